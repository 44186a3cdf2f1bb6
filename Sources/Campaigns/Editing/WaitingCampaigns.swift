import Model
import Synchronization

/// The names in a campaign's text that access and release depend on.
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

/// A cache of the names in campaign texts that wait for release, so that a large text is not parsed for each request.
/// The key is the hash of the text. The cache holds as many texts as may wait (``ManageFiles/changesMax``).
package final class WaitingCampaigns: Sendable {
    /// The names by SHA-256 of the text in hex. The inner optional is `nil` if nothing in the text could be understood.
    private let known = Mutex<[String: CampaignNames?]>([:])

    package init() {}

    /// Returns the cached names, or reads them.
    ///
    /// - Parameter read: returns `nil` for a text that no longer waits. This result is not cached.
    func names(hash: String, _ read: () async throws -> CampaignNames??) async rethrows -> CampaignNames?? {
        if let names = known.withLock({ $0[hash] }) { return names }
        guard let names = try await read() else { return nil }
        known.withLock { known in
            if known.count >= ManageFiles.changesMax { known = [:] }
            known[hash] = .some(names)
        }
        return names
    }

    /// Removes the texts that no longer wait.
    func keep(_ hashes: [String]) {
        let hashes = Set(hashes)
        known.withLock { known in known = known.filter { hashes.contains($0.key) } }
    }
}
