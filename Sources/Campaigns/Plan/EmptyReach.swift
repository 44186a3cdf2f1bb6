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
        var left = plan.reach.suppressed.reduce(into: [:]) { $0[$1.key.rawValue] = $1.value }
        if plan.tooLarge > 0, plan.tooLarge == plan.reach.total {
            left[SuppressionReason.payloadTooLarge.rawValue] = plan.tooLarge
        } else if let quiet = plan.quiet {
            left[SuppressionReason.quietHours.rawValue, default: 0] += quiet.suppressed
        }
        guard left.values.reduce(0, +) >= plan.selected else { return nil }
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
