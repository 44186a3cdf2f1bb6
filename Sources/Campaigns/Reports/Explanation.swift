package import Model
package import Store

/// Why a device got what it got: every run, decision and token event in order of time, in words.
package struct Explanation: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        /// The device registered, or got a new token.
        case registration
        /// What a run did about it.
        case delivery
        /// Its token is gone, or it was suspended.
        case status
    }

    package struct Line: Hashable, Sendable {
        package var at: Timestamp
        package var kind: Kind
        package var run: Int64?
        package var campaign: String?
        package var text: String
    }

    package private(set) var lines: [Line] = []
    /// What would become of a push sent now.
    package private(set) var now: [String] = []

    /// - Parameter budget: of the device's topic; nil leaves the silent budget out.
    package init(_ story: DeviceStory, budget: Configuration.SilentBudget?, now: Timestamp) {
        addTokens(story)
        addStatus(story)
        for chapter in story.chapters { add(chapter, story.device) }
        // What happened at one moment stays in the order it was found in: tokens before runs.
        let order = lines.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
        lines = order.map(\.element)
        self.now = Self.present(story, budget, now)
    }

    private mutating func addTokens(_ story: DeviceStory) {
        let device = story.device
        for (index, old) in story.oldTokens.enumerated() {
            let isLast = index == story.oldTokens.count - 1
            let next = isLast ? device.record.token : story.oldTokens[index + 1].token
            let environment = isLast ? device.record.environment : story.oldTokens[index + 1].environment
            let moved = environment == old.environment ? "" : ", and moved to \(environment.rawValue)"
            lines.append(
                Line(
                    at: old.replacedAt, kind: .registration,
                    text: "token \(old.token.redacted) replaced by \(next.redacted)\(moved)"))
        }
        if let registeredAt = device.record.registeredAt {
            lines.append(
                Line(
                    at: registeredAt, kind: .registration,
                    text: "registered last, with token \(device.record.token.redacted) "
                        + "(\(device.record.environment.rawValue))"))
        }
    }

    private mutating func addStatus(_ story: DeviceStory) {
        let device = story.device
        guard device.status != .active, let since = device.statusAt else { return }
        let reason = device.statusReason ?? "no reason on record"
        // The run whose answer did it; deliveries may be gone by now.
        let cause = story.chapters.last {
            $0.delivery?.outcome.reason == device.statusReason && $0.delivery?.outcome.generation == device.generation
        }
        let source = cause.map { "; learned from \($0.run.campaign), run \($0.run.id)" } ?? ""
        let text =
            device.status == .gone
            ? "token gone since \(since.iso8601) (410 \(reason), inactive since then)\(source)"
            : "suspended (\(reason))\(source); a new registration brings it back"
        lines.append(Line(at: since, kind: .status, run: cause?.run.id, campaign: cause?.run.campaign, text: text))
    }

    private mutating func add(_ chapter: DeviceStory.Chapter, _ device: StoredDevice) {
        let run = chapter.run
        guard let delivery = chapter.delivery else {
            let text =
                run.isFrozen
                ? "not in the audience of \(run.campaign)"
                : "not in the audience of \(run.campaign) so far; it is still being written down"
            lines.append(
                Line(at: run.createdAt, kind: .delivery, run: run.id, campaign: run.campaign, text: text))
            return
        }
        let at = delivery.outcome.settledAt ?? run.startedAt ?? run.createdAt
        lines.append(
            Line(
                at: at, kind: .delivery, run: run.id, campaign: run.campaign,
                text: DeliveryWords(run: run, delivery: delivery, device: device).text))
    }

    private static func present(
        _ story: DeviceStory, _ budget: Configuration.SilentBudget?, _ now: Timestamp
    ) -> [String] {
        let device = story.device
        let status =
            switch device.status {
            case .active: "active: it is in every audience that selects it"
            case .suspended: "suspended: nothing is sent to it until it registers again"
            case .gone: "gone: nothing is sent to it until it registers again"
            }
        var present = [status]
        if device.record.alertsAllowed == false {
            present.append("alerts are not allowed on it: those of an audience are suppressed")
        }
        if let budget {
            let (used, nextSlot) = story.silentBudget(budget, now: now)
            let next = nextSlot.map { $0 <= now ? "" : "; the next may leave at \($0.iso8601)" } ?? ""
            present.append(
                "silent budget: \(used) of \(budget.limit) background pushes used in "
                    + "\(WrittenDuration.text(budget.window))\(next)")
        }
        return present
    }
}
