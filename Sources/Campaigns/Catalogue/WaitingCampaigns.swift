import Model
import Synchronization

/// What a campaign's text names, as far as access and release depend on it.
package struct CampaignNames: Hashable, Sendable {
    package var topic: String
    package var templates: Set<String>
    /// The segments that the audience and the stages name.
    var segments: Set<String>
    var startsAutomatically: Bool
    var readsSegmentsBySQL: Bool

    init(_ campaign: Campaign) {
        topic = campaign.topic
        templates = Set(campaign.templatesNamed)
        segments = campaign.segmentsNamed
        startsAutomatically = campaign.startsAutomatically
        readsSegmentsBySQL = campaign.audienceSQL?.lowercased().contains("segment_view") == true
    }
}

/// What the texts of campaign files that wait for release name, so that a text of the largest size is not read again for each
/// request. It is kept by the hash of the text, for as many texts as may wait (``ManageFiles/changesMax``).
package final class WaitingCampaigns: Sendable {
    /// By SHA-256 of the text in hex. The inner optional is `nil` if nothing in the text could be understood.
    private let known = Mutex<[String: CampaignNames?]>([:])

    package init() {}

    /// Returns what is known, or reads it.
    ///
    /// - Parameter read: returns `nil` for a text that waits no more, which is not kept.
    func names(hash: String, _ read: () async throws -> CampaignNames??) async rethrows -> CampaignNames?? {
        if let names = known.withLock({ $0[hash] }) { return names }
        guard let names = try await read() else { return nil }
        known.withLock { known in
            if known.count >= ManageFiles.changesMax { known = [:] }
            known[hash] = .some(names)
        }
        return names
    }

    /// Forgets the texts that wait no more.
    func keep(_ hashes: [String]) {
        let hashes = Set(hashes)
        known.withLock { known in known = known.filter { hashes.contains($0.key) } }
    }
}
