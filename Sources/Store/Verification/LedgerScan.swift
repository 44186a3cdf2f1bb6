package import Model

/// The budget of each topic.
package struct SilentBudgets: Sendable {
    private let byTopic: [String: Configuration.SilentBudget]

    package init(byTopic: [String: Configuration.SilentBudget]) { self.byTopic = byTopic }

    /// Returns the default budget if none is configured.
    package subscript(topic: String?) -> Configuration.SilentBudget {
        topic.flatMap { byTopic[$0] } ?? Configuration.SilentBudget()
    }
}

/// The budgets that the pushes of runs were reserved under, whatever is configured now.
package struct RecordedBudgets: Sendable {
    package static let keyPrefix = "silent_budget."
    private let byRun: [Int64: [Configuration.SilentBudget]]

    package init(_ byRun: [Int64: [Configuration.SilentBudget]]) { self.byRun = byRun }

    /// Returns the run's budgets; `nil` for a run of an older version.
    package subscript(run: Int64) -> [Configuration.SilentBudget]? { byRun[run] }

    /// The shortest window of any of them.
    package var shortestWindow: Duration? { byRun.values.flatMap { $0.map(\.window) }.min() }
}

/// Checks the silent ledger against its own rule. When a push was reserved, the window must have held fewer than
/// `limit` other pushes of its device. Entries older than two windows may be pruned already.
package struct LedgerScan {
    package static let name = "silent_budget"
    package static let promise = "no device gets more background pushes in a window than the budget allows"

    /// A row of the ledger.
    package struct Push {
        package var device, run, number: Int64
        package var reservedAt: Timestamp
        package var settledAt: Timestamp?

        package init(device: Int64, run: Int64, number: Int64, reservedAt: Timestamp, settledAt: Timestamp?) {
            self.device = device
            self.run = run
            self.number = number
            self.reservedAt = reservedAt
            self.settledAt = settledAt
        }
    }

    private let budget: (_ topic: String?) -> Configuration.SilentBudget
    private let recorded: RecordedBudgets?
    private var device: Int64 = 0
    private var allowed = Configuration.SilentBudget()
    private var ends: [Timestamp?] = []
    package private(set) var devices = 0
    package private(set) var pushes = 0
    package private(set) var violations: [StoreFault] = []
    /// The pushes that exceed the configured budget, in runs whose own budget is not recorded.
    package private(set) var doubts: [StoreFault] = []

    /// - Parameters:
    ///   - recorded: the budgets under which runs were sent. A push is correct if it fits `budget` or one of its run's
    ///     recorded budgets. If `nil`, `budget` alone decides.
    ///   - budget: the budget by topic; the topic is `nil` for a device that is no longer stored.
    package init(
        recorded: RecordedBudgets? = nil, _ budget: @escaping (_ topic: String?) -> Configuration.SilentBudget
    ) {
        self.recorded = recorded
        self.budget = budget
    }

    /// Adds a push. Pushes come in order of device, then in order of reservation, then with the higher number first.
    package mutating func add(_ push: Push, topic: () -> String?) {
        if push.device != device {
            device = push.device
            allowed = budget(topic())
            ends.removeAll(keepingCapacity: true)
            devices += 1
        }
        // A number below 1 marks a push inherited from a merged device. It counts, but it was not decided for this
        // device.
        if push.number > 0 {
            let ofThen = recorded?[push.run]
            let others = others(allowed, push)
            if others >= allowed.limit, (ofThen ?? []).allSatisfy({ self.others($0, push) >= $0.limit }) {
                let isKnown = recorded == nil || ofThen != nil
                if isKnown { violations.append(violation(push, others)) } else { doubts.append(doubt(push, others)) }
            }
            pushes += 1
        }
        ends.append(push.settledAt)
    }

    private func others(_ budget: Configuration.SilentBudget, _ push: Push) -> Int {
        ends.count(where: RollingWindow(budget, at: push.reservedAt).counts)
    }

    private func doubt(_ push: Push, _ others: Int) -> StoreFault {
        let fault = violation(push, others)
        return StoreFault(
            run: fault.run, device: fault.device,
            "\(fault.what) now; the budget at that time is not recorded, and the configuration may have changed")
    }

    private func violation(_ push: Push, _ others: Int) -> StoreFault {
        StoreFault(
            run: push.run, device: device,
            "a background push at \(push.reservedAt.iso8601) followed \(others) others within "
                + "\(WrittenDuration.text(allowed.window)); \(allowed.limit) in total are allowed")
    }
}
