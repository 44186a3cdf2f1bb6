package import Model
package import Store

/// The reason why a run sends to no device. The author of a campaign never intends this, so texts and JSON report
/// it. ``Store/RunSuccess`` decides whether such a run is a success.
package struct EmptyReach: Codable, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Codable, Hashable, Sendable, CaseIterable {
        /// No device is registered under the push's topic, and none is selected under the app's other topics.
        case noDevice = "no_device"
        case noDeviceMatches = "no_device_matches"
        /// The audience's devices are registered under another topic of the app.
        case otherTopic = "other_topic"
        /// The audience selects devices, but none of them gets a push.
        case allLeftOut = "all_left_out"
    }

    package var reason: Reason
    /// The reason in words, with a remedy if there is one.
    package var detail: String

    package var description: String { "no device is reached: \(detail)" }

    private init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Returns the reason for a run that would start now; `nil` if any device is reached, even if only later.
    static func of(_ plan: Plan, in store: any DeviceRegistry, now: Timestamp) async throws -> EmptyReach? {
        guard plan.selected > 0 else {
            return try await selectingNoDevice(plan.definition.campaign, plan.otherTopics, store)
        }
        guard plan.expected.devices == 0 else { return nil }
        var left = plan.reach.suppressed.reduce(into: [:]) { $0[$1.key.rawValue] = $1.value }
        if let (reason, devices) = plan.expected.leftOut.max(by: { $0.value < $1.value }) {
            left[reason.rawValue, default: 0] += devices
        }
        return leavingOut(left, of: plan.selected)
    }

    /// Returns the reason for a run that is over; `nil` if any push was sent, or the run did not finish.
    package static func of(
        _ run: Run, in store: any DeviceRegistry & OutcomeReader, now: Timestamp
    ) async throws -> EmptyReach? {
        let counts = run.counts
        guard run.state == .finished, counts.suppressed == counts.audience else { return nil }
        guard counts.audience > 0 else {
            let campaign = run.definition.campaign
            let other = try await TopicMismatch.selected(by: campaign, in: store, now: now)
            return try await selectingNoDevice(campaign, other, store)
        }
        let report = try await store.report(run.id)
        // If a request was sent, APNs may have accepted the push, even if the response was lost.
        guard report.attempts == 0 else { return nil }
        return leavingOut(
            report.suppressed.reduce(into: [:]) { $0[$1.reason, default: 0] += $1.count }, of: counts.audience)
    }

    private static func selectingNoDevice(
        _ campaign: Campaign, _ other: TopicMismatch?, _ store: any DeviceRegistry
    ) async throws -> EmptyReach {
        if let other { return EmptyReach(.otherTopic, other.description) }
        let topic = campaign.deviceTopic
        guard try await store.deviceCounts().contains(where: { $0.topic == topic }) else {
            return EmptyReach(
                .noDevice, "no device is registered under \(topic); import some with `fanfare devices import FILE`")
        }
        let source = campaign.audienceSQL ?? campaign.audience.source
        return EmptyReach(
            .noDeviceMatches,
            source.isEmpty
                ? "no device under \(topic) is active"
                : "no active device under \(topic) matches the audience \(source)")
    }

    private static func leavingOut(_ reasons: [String: Int], of selected: Int) -> EmptyReach {
        let list = reasons.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key) \($0.value.grouped)" }.joined(separator: ", ")
        return EmptyReach(
            .allLeftOut,
            (selected == 1 ? "the one device" : "all \(selected.grouped) devices")
                + " that the audience selects \(selected == 1 ? "is" : "are") left out: \(list)")
    }
}

/// The devices of a run's audience that are expected to get the push, at once or later. The others are in the audience,
/// but a rule of the run leaves them out when their turn comes.
package struct ExpectedReach: Hashable, Sendable, CustomStringConvertible {
    /// The number of devices. If several rules leave devices out, this is an upper bound, because a device may be
    /// counted by each of them.
    package let devices: Int
    package let isUpperBound: Bool
    /// The devices that each rule leaves out, by reason.
    package let leftOut: [SuppressionReason: Int]

    init(reach: Int, leftOut: [SuppressionReason: Int]) {
        let leftOut = leftOut.filter { $0.value > 0 }
        self.leftOut = leftOut
        // A device without a zone has no quiet hours, so these two never count a device twice.
        let byClock = leftOut[.quietHours, default: 0] + leftOut[.unknownZone, default: 0]
        let others = leftOut.filter { $0.key != .quietHours && $0.key != .unknownZone }.map(\.value)
        let parts = ([byClock] + others).filter { $0 > 0 }
        isUpperBound = parts.count > 1
        devices = max(0, reach - (parts.max() ?? 0))
    }

    package var description: String {
        (isUpperBound && devices > 0 ? "at most " : "") + devices.counted("device")
    }
}

extension Plan {
    package var expected: ExpectedReach {
        ExpectedReach(
            reach: reach.total,
            leftOut: [
                .quietHours: quiet?.suppressed ?? 0, .unknownZone: quiet?.unknownZone ?? 0,
                .frequencyCap: capped?.devices.leftOut ?? 0,
                .payloadTooLarge: tooLarge,
            ])
    }
}

extension PlanResult {
    package var expected: ExpectedReach {
        let tooLarge = texts.filter { $0.payloadMinBytes > payloadLimitBytes }.reduce(0) { $0 + $1.devices }
        return ExpectedReach(
            reach: reach,
            leftOut: [
                .quietHours: quietHours?.leftOut ?? 0, .unknownZone: quietHours?.unknownZone ?? 0,
                .frequencyCap: frequencyCaps?.leftOut ?? 0,
                .payloadTooLarge: tooLarge,
            ])
    }
}
