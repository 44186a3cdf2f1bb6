package import CampaignFiles
package import Model
package import Store

/// Devices that a campaign cannot reach because they are registered under another topic of the app: each type of push with
/// a suffix has tokens of its own, which are imported under the topic with the suffix (`ProviderProtocol` section 4).
package struct OtherTopics: Hashable, Sendable, CustomStringConvertible {
    package struct Topic: Hashable, Sendable {
        package var name: String
        package var devices: Int
    }

    /// Where the campaign's devices should be.
    package let topic: String
    package let pushType: PushType
    /// Where they are, most devices first; never empty.
    package let found: [Topic]
    /// False: there is none at all where the campaign's devices should be.
    private let isAnyInPlace: Bool

    private init?(_ campaign: Campaign, _ found: [Topic], isAnyInPlace: Bool) {
        let found = found.filter { $0.devices > 0 }
        guard !found.isEmpty else { return nil }
        topic = campaign.deviceTopic
        pushType = campaign.pushType
        self.found = found.sorted { ($1.devices, $0.name) < ($0.devices, $1.name) }
        self.isAnyInPlace = isAnyInPlace
    }

    package var description: String {
        let places = found.map { "\($0.devices.grouped) under \($0.name)" }.joined(separator: ", ")
        return
            "no device \(isAnyInPlace ? "of the audience " : "")is registered under \(topic), where a \(pushType.rawValue) push goes: \(places). Import the tokens "
            + "that the app gets for \(pushType.rawValue) pushes with topic \(topic)"
    }

    /// From what the store holds of the app, whatever the audience: nil when there is a device where the push goes, or
    /// nowhere else either.
    package init?(_ campaign: Campaign, _ counts: [DeviceCount]) {
        let active = counts.filter { $0.status == .active }
        guard !active.contains(where: { $0.topic == campaign.deviceTopic }) else { return nil }
        let related = Set(PushType.allCases.map { campaign.topic + $0.topicSuffix })
        let topics = Dictionary(grouping: active.filter { related.contains($0.topic) }, by: \.topic)
        self.init(
            campaign,
            topics.map { name, counts in
                Topic(name: name, devices: counts.reduce(0) { $0 + $1.count })
            }, isAnyInPlace: false)
    }

    /// For an audience that selects nobody where the push goes: what it selects under the app's other topics.
    static func selected(
        by campaign: Campaign, in store: any DeviceRegistry, now: Timestamp
    ) async throws -> OtherTopics? {
        var topics: Set = [campaign.deviceTopic]
        var found: [Topic] = []
        for pushType in PushType.allCases {
            var other = campaign
            other.pushType = pushType
            guard topics.insert(other.deviceTopic).inserted else { continue }
            let reach = try await store.reach(of: other, budget: nil, waves: nil, now: now)
            found.append(
                Topic(name: other.deviceTopic, devices: reach.total + reach.suppressed.values.reduce(0, +)))
        }
        let counts = try await store.deviceCounts()
        return OtherTopics(
            campaign, found,
            isAnyInPlace: counts.contains { $0.status == .active && $0.topic == campaign.deviceTopic })
    }

    /// At the line that says where the push goes.
    package func diagnostic(of source: LocatedCampaign) -> Diagnostic {
        let location = source.locations["push_type"] ?? SourceLocation()
        return Diagnostic(
            path: source.path, line: location.line, column: location.column, severity: .warning, what: description)
    }
}
