import CampaignFiles
package import Model
import Platform
package import Store

/// Changes that wait for release. A campaign that starts automatically sends what its files say. An account that may
/// not start runs therefore cannot change these files directly. Its text waits until an account that may start runs
/// releases it.
extension ManageFiles {
    /// The maximum number of changes that may wait. Each has at most ``bytesMax`` bytes.
    package static let changesMax = 100

    /// Returns whether a text would change what starts automatically. For a campaign file, this is so if the current
    /// or the new campaign starts automatically. For a template, it is so if a campaign that uses the template does.
    /// A campaign that waits for release counts, because its releaser has seen the template as it is. A campaign
    /// file that cannot be read counts as well.
    package func startsAutomatically(_ kind: Kind, _ name: String, text: String) async throws -> Bool {
        switch kind {
        case .campaign:
            let texts = [campaign(ofText: text, name: name)] + (isThere(kind, name) ? [campaign(ofFile: name)] : [])
            return texts.contains { $0?.startsAutomatically ?? true }
        case .template:
            return try await campaignsToCome().contains { campaign in
                campaign.map { $0.startsAutomatically && $0.templates.contains(name) } ?? true
            }
        }
    }

    /// Returns the campaigns of the folder and those that wait for release; `nil` for each in which nothing could be
    /// understood.
    private func campaignsToCome() async throws -> [CampaignNames?] {
        try await campaigns.map { $0.map(CampaignNames.init) } + changesToCome().map(\.names)
    }

    /// Returns the changed campaigns that wait for release, with `nil` names for each in which nothing could be
    /// understood.
    func changesToCome() async throws -> [ChangeToCome] {
        let changes = try await store.pendingChanges().filter { $0.kind == Kind.campaign.rawValue }
        waiting.keep(changes.map(\.hash))
        var found: [ChangeToCome] = []
        for change in changes {
            guard let names = try await names(ofWaiting: change.id, change.name, hash: change.hash) else { continue }
            found.append(ChangeToCome(campaign: change.name, names: names))
        }
        return found
    }

    /// Returns what the waiting text of a campaign file names. The inner optional is `nil` if nothing in the text could
    /// be understood. The outer optional is `nil` if the text no longer waits.
    package func names(ofWaiting id: Int64, _ name: String, hash: String) async throws -> CampaignNames?? {
        try await waiting.names(hash: hash) {
            try await store.pendingChange(id).map { change in
                campaign(ofText: change.text, name: name).map(CampaignNames.init)
            }
        }
    }

    /// Throws if the segment may belong to the audience of a campaign that starts automatically, or if it limits the
    /// devices of tests (`test_devices`).
    ///
    /// - Parameter segments: all segments of the store.
    package func requireStartsNothing(segment name: String, _ segments: [SegmentSummary]) async throws {
        var open = Set([configuration.testDevices].compactMap(\.self))
        for campaign in try await campaignsToCome() {
            guard let campaign else { throw Self.audienceRefusal(name) }
            guard campaign.startsAutomatically else { continue }
            if campaign.readsSegmentsBySQL { throw Self.audienceRefusal(name) }
            open.formUnion(campaign.segments)
        }
        var known = open
        while let next = open.popFirst() {
            guard next != name else { throw Self.audienceRefusal(name) }
            // Take all segments with this name, in any Unicode normalization form.
            let named = segments.lazy.filter { $0.name == next }.reduce(into: Set<String>()) { named, segment in
                guard case .dynamic(let source) = segment.kind else { return }
                named.formUnion((try? ExpressionText.parse(source, named: "expression"))?.segments ?? [])
            }
            open.formUnion(named.subtracting(known))
            known.formUnion(named)
        }
    }

    /// Returns the users of a segment: campaigns of the folder, changes of campaigns that wait for release, and
    /// `test_devices`. A campaign file that cannot be read counts, because it may need the segment.
    package func users(ofSegment name: String) async throws -> [String] {
        try await users(ofSegments: [name])[name, default: []]
    }

    /// Returns the same for several segments, by their names. Reads each file once.
    func users(ofSegments names: [String]) async throws -> [String: [String]] {
        let paths = YAMLFolder.files(in: configuration.campaigns)
        let campaigns = paths.map { (path: $0, campaign: campaign(ofPath: $0)) }
        let changes = try await changesToCome()
        var users: [String: [String]] = [:]
        for name in names {
            users[name] = campaigns.compactMap { path, campaign in
                guard let campaign else { return "\(path), which cannot be read" }
                return campaign.uses(segment: name) ? "campaign \(campaign.name)" : nil
            }
            for change in changes
            where change.names.map({ $0.segments.contains(name) || $0.readsSegmentsBySQL }) ?? true {
                users[name, default: []].append("a change of campaign \(change.campaign) that waits for release")
            }
            guard configuration.testDevices == name else { continue }
            users[name, default: []].append("test_devices in the configuration")
        }
        return users
    }

    /// Returns the refusal, which does not name the campaign: the campaign may belong to another app.
    private static func audienceRefusal(_ segment: String) -> Failure {
        Failure(
            .refused,
            "segment \"\(segment)\" is, or may be, in the audience of a campaign that starts automatically, or in "
                + "test_devices; ask an account that may start runs (sender, admin) to change it")
    }
}

extension Campaign {
    /// Whether a schedule or a feed starts the campaign.
    package var startsAutomatically: Bool { feed != nil || schedule.map { $0.trigger != .none } == true }

    /// The segments that the campaign's audience and stages name.
    package var segmentsNamed: Set<String> {
        (stages ?? []).reduce(into: audience.expression.segments) { names, stage in
            names.formUnion(stage.seeds?.segments ?? [])
        }
    }
}

/// A campaign file that changes once it is released.
struct ChangeToCome {
    /// The name of the file, without `.yaml`.
    var campaign: String
    /// `nil` if nothing in the new text could be understood.
    var names: CampaignNames?
}
