package import CampaignFiles
package import Model
package import Store

/// Devices that a campaign cannot reach because they are registered under another topic of the app. Each push type
/// whose topic has a suffix has its own tokens, which are imported under that topic (`ProviderProtocol` section 4).
package struct TopicMismatch: Hashable, Sendable, CustomStringConvertible {
    package struct Topic: Hashable, Sendable {
        package var name: String
        package var devices: Int
    }

    /// The topic under which the campaign's devices should be registered.
    package let topic: String
    package let pushType: PushType
    /// The topics under which the devices are registered, most devices first; never empty.
    package let found: [Topic]
    /// Whether any active device is registered under ``topic``.
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
            "no device \(isAnyInPlace ? "of the audience " : "")is registered under \(topic), which "
            + "\(pushType.rawValue) pushes need; registered: \(places). Import the tokens "
            + "that the app gets for \(pushType.rawValue) pushes with topic \(topic)"
    }

    /// Checks the app's active devices, whatever the campaign's audience is. Returns `nil` if a device is registered
    /// under the push's topic, or if the app has no device under another topic either.
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

    /// Returns the devices that an audience selects under the app's other topics. The caller has found that the
    /// audience selects no device under the push's topic.
    static func selected(
        by campaign: Campaign, in store: any DeviceRegistry, now: Timestamp
    ) async throws -> TopicMismatch? {
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
        return TopicMismatch(
            campaign, found,
            isAnyInPlace: counts.contains { $0.status == .active && $0.topic == campaign.deviceTopic })
    }

    /// Returns a warning at the line of `push_type`, which determines the push's topic.
    package func diagnostic(of source: LocatedCampaign) -> Diagnostic {
        let location = source.locations["push_type"] ?? SourceLocation()
        return Diagnostic(
            path: source.path, line: location.line, column: location.column, severity: .warning, what: description)
    }
}
