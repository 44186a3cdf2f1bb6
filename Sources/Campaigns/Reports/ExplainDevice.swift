import CampaignFiles
package import Model
package import Store

/// Explains what happened to a device: every run, decision and token, in order.
package struct ExplainDevice: Sendable {
    package struct Explained: Sendable {
        package var history: DeviceHistory
        package var explanation: Explanation

        package var result: ExplanationResult { ExplanationResult(history, explanation) }
    }

    private let store: any DeviceRegistry & OutcomeReader
    private let app: @Sendable (_ topic: String) -> Configuration.App?

    /// - Parameter app: returns `nil` if the configuration does not contain the topic.
    package init(
        store: any DeviceRegistry & OutcomeReader, app: @escaping @Sendable (_ topic: String) -> Configuration.App?
    ) {
        self.store = store
        self.app = app
    }

    /// Returns an explanation for each device that a text may mean. An old token finds the device that had it.
    package func explain(_ text: String, now: Timestamp) async throws -> [Explained] {
        var explained: [Explained] = []
        for device in try await DeviceLookup.devices(text, in: store) {
            guard let history = try await store.history(ofDevice: device.id) else { continue }
            explained.append(self.explained(history, now: now))
        }
        return explained
    }

    /// Returns the explanation for the device with this number.
    package func explain(_ device: Int64, now: Timestamp) async throws -> Explained {
        guard let history = try await store.history(ofDevice: device) else {
            throw Failure(.notFound, "no device \(device)")
        }
        return explained(history, now: now)
    }

    private func explained(_ history: DeviceHistory, now: Timestamp) -> Explained {
        // A topic with a suffix carries neither background pushes nor alerts, so no budget and no caps apply.
        let app = app(history.device.record.topic)
        let explanation = Explanation(history, budget: app?.silentBudget, caps: app?.frequencyCaps ?? [], now: now)
        return Explained(history: history, explanation: explanation)
    }
}

/// The stable shape of `explain --json`: a list of these.
package struct ExplanationResult: Codable, Hashable, Sendable {
    package struct Event: Codable, Hashable, Sendable {
        package var at, kind: String
        package var run: Int64?
        package var campaign: String?
        package var text: String
    }

    package var device: DeviceResult
    package var events: [Event]
    package var now: [String]
    package var isCut: Bool

    package init(_ history: DeviceHistory, _ explanation: Explanation) {
        device = DeviceResult(history.device)
        events = explanation.lines.map { line in
            Event(
                at: line.at.iso8601, kind: line.kind.rawValue, run: line.run, campaign: line.campaign, text: line.text)
        }
        now = explanation.now
        isCut = history.isCut
    }
}

/// The reasons for what a device received: every run, decision and token event in order of time, in words.
package struct Explanation: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        /// The device registered, or got a new token.
        case registration
        /// A run's decision about the device, or its outcome.
        case delivery
        /// The device's token is gone, or the device was suspended.
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
    /// What would happen to a push sent now.
    package private(set) var now: [String] = []

    /// - Parameters:
    ///   - budget: the silent budget of the device's topic; `nil` leaves it out.
    ///   - caps: the frequency caps of the device's topic.
    package init(
        _ history: DeviceHistory, budget: Configuration.SilentBudget?, caps: [FrequencyCap] = [], now: Timestamp
    ) {
        addTokens(history)
        addStatus(history)
        for entry in history.entries { add(entry, history.device) }
        // Events of the same moment keep the order in which they were added: tokens before runs.
        let order = lines.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
        lines = order.map(\.element)
        self.now = Self.present(history, budget, now) + caps.map { Self.standing(history, $0, now) }
    }

    private mutating func addTokens(_ history: DeviceHistory) {
        let device = history.device
        for (index, old) in history.oldTokens.enumerated() {
            let isLast = index == history.oldTokens.count - 1
            let next = isLast ? device.record.token : history.oldTokens[index + 1].token
            let environment = isLast ? device.record.environment : history.oldTokens[index + 1].environment
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
                    text: "last registered, with token \(device.record.token.redacted) "
                        + "(\(device.record.environment.rawValue))"))
        }
    }

    private mutating func addStatus(_ history: DeviceHistory) {
        let device = history.device
        guard device.status != .active, let since = device.statusAt else { return }
        let reason = device.statusReason ?? "no recorded reason"
        // The run whose response changed the status. It is unknown if its deliveries have been deleted.
        let cause = history.entries.last {
            $0.delivery?.outcome.reason == device.statusReason && $0.delivery?.outcome.generation == device.generation
        }
        let source = cause.map { "; learned from \($0.run.campaign), run \($0.run.id)" } ?? ""
        let text =
            device.status == .gone
            ? "token gone since \(since.iso8601) (410 \(reason), inactive since then)\(source)"
            : "suspended (\(reason))\(source); a new registration reactivates the device"
        lines.append(Line(at: since, kind: .status, run: cause?.run.id, campaign: cause?.run.campaign, text: text))
    }

    private mutating func add(_ entry: DeviceHistory.Entry, _ device: StoredDevice) {
        let run = entry.run
        guard let delivery = entry.delivery else {
            let text =
                entry.prunedAt.map {
                    "the outcome of \(run.campaign) for this device is no longer known: its outcomes by device were "
                        + "pruned on \($0.iso8601.prefix(10)); only the counts remain: `fanfare report \(run.id)`"
                }
                ?? "not in the audience of \(run.campaign)"
                + (run.isFrozen
                    ? Self.reason(entry.unmet)
                    : run.state.isFinal
                        ? "; the run ended before its audience was stored completely"
                        : " so far; the audience is still being stored")
            lines.append(
                Line(at: run.createdAt, kind: .delivery, run: run.id, campaign: run.campaign, text: text))
            return
        }
        let at = delivery.outcome.settledAt ?? run.startedAt ?? run.createdAt
        let outcome = DeliverySummary(run: run, delivery: delivery, device: device).text
        let hour = entry.hour.flatMap { HourSummary(run: run, hour: $0, device: device).text }
        lines.append(
            Line(
                at: at, kind: .delivery, run: run.id, campaign: run.campaign,
                text: outcome + (hour.map { "; \($0)" } ?? "")))
    }

    /// Returns why a device was not in an audience, as far as its present data tell.
    private static func reason(_ unmet: [AudienceExpression]?) -> String {
        guard let unmet else { return "" }
        guard !unmet.isEmpty else {
            return
                ": the device's present data meet every condition; the data changed, or the device registered, after the run "
                + "started"
        }
        let conditions = unmet.map { "`\($0.text)`" }.joined(separator: " and ")
        return ": the device's present data do not meet \(conditions)"
    }

    private static func standing(_ history: DeviceHistory, _ cap: FrequencyCap, _ now: Timestamp) -> String {
        let (used, nextSlot) = history.frequencyCap(cap, now: now)
        guard let nextSlot, nextSlot > now else { return "frequency cap of \(cap.summary): \(used) used" }
        // The cap reserves some slots for these classes.
        let classes = cap.reserve.keys.sorted().joined(separator: ", ")
        return "frequency cap of \(cap.summary): \(used) used; the next push may be sent at \(nextSlot.iso8601)"
            + (classes.isEmpty ? "" : ", except for the class \(classes)")
    }

    private static func present(
        _ history: DeviceHistory, _ budget: Configuration.SilentBudget?, _ now: Timestamp
    ) -> [String] {
        let device = history.device
        let status =
            switch device.status {
            case .active: "active: runs may send to the device"
            case .suspended: "suspended: nothing is sent to the device until it registers again"
            case .gone: "gone: nothing is sent to the device until it registers again"
            }
        var present = [status]
        if device.record.alertsAllowed == false {
            present.append("alerts are not allowed on this device: alerts of runs are suppressed")
        }
        if let budget {
            let (used, nextSlot) = history.silentBudget(budget, now: now)
            let next = nextSlot.map { $0 <= now ? "" : "; the next push may be sent at \($0.iso8601)" } ?? ""
            present.append(
                "silent budget: \(used) of \(budget.limit) background pushes used in "
                    + "\(WrittenDuration.text(budget.window))\(next)")
        }
        return present
    }
}
