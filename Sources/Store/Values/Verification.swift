package import Model

/// What a look at everything a store promises has found; see ``StoreUpkeep/verify(budgets:faultsMax:)``.
package struct Verification: Hashable, Sendable {
    /// One promise, and where it is broken.
    package struct Check: Hashable, Sendable {
        /// Short and stable, for programs.
        package var name: String
        /// What must hold, in words.
        package var promise: String
        /// All there are, or more than are listed at least where ``isCountAtLeast``.
        package var faultCount: Int
        /// Looking stopped early; there may be more.
        package var isCountAtLeast: Bool
        /// The first of them.
        package var faults: [StoreFault]
        /// What may be a fault or not: what it would have to be held against is on no record.
        package var warnings: [StoreFault]
        /// How many things were compared, for a check that would hold as well if it looked at nothing; nil: not counted.
        package var compared: Int?

        package init(
            _ name: String, _ promise: String, faults: [StoreFault] = [], count: Int? = nil,
            isCountAtLeast: Bool = false, warnings: [StoreFault] = [], compared: Int? = nil
        ) {
            self.name = name
            self.promise = promise
            self.faults = faults
            faultCount = count ?? faults.count
            self.isCountAtLeast = isCountAtLeast
            self.warnings = warnings
            self.compared = compared
        }
    }

    package var checks: [Check]

    package init(checks: [Check]) {
        self.checks = checks
    }

    /// True when every promise holds.
    package var isSound: Bool { checks.allSatisfy { $0.faultCount == 0 } }
    package var faultCount: Int { checks.reduce(0) { $0 + $1.faultCount } }

    /// The checks of what was sent under a budget or a cap. They say nothing against the data: the configuration may have
    /// changed since, and a copy that kept no budget is as whole as one that did.
    private static let ofBudgets: Set = [LedgerScan.name, "silent_ledger", CapScan.name, CapCover.name]

    /// True when every promise about the data itself holds.
    package var isWhole: Bool { checks.allSatisfy { $0.faultCount == 0 || Self.ofBudgets.contains($0.name) } }
    /// The broken promises about budgets and caps.
    package var brokenBudgets: [Check] { checks.filter { $0.faultCount > 0 && Self.ofBudgets.contains($0.name) } }

    package subscript(name: String) -> Check? { checks.first { $0.name == name } }
}

/// One row, or set of rows, that breaks a promise. Holds no whole token.
package struct StoreFault: Hashable, Sendable {
    package var run: Int64?
    package var device: Int64?
    /// The last 8 characters of the device's token, where the device is stored.
    package var tokenEnd: String?
    /// What is wrong, without naming run and device again.
    package var what: String

    package init(run: Int64? = nil, device: Int64? = nil, _ what: String) {
        self.run = run
        self.device = device
        self.what = what
    }
}

/// What a backup holds.
package struct BackupSummary: Hashable, Sendable {
    package var path: String
    /// Of the schema.
    package var version: Int
    package var bytes: Int
    package var devices: Int
    package var runs: Int

    package init(path: String, version: Int, bytes: Int, devices: Int, runs: Int) {
        self.path = path
        self.version = version
        self.bytes = bytes
        self.devices = devices
        self.runs = runs
    }
}

/// What goes on in a store at one moment, for metrics: cheap to ask for, whatever the store holds.
package struct StoreObservation: Hashable, Sendable {
    /// A run that is not over.
    package struct Queue: Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        /// How long ago the first of those that wait for a time was due; zero while none is.
        package var overdue: Duration

        package init(run: Int64, campaign: String, pending: Int, leased: Int, overdue: Duration) {
            self.run = run
            self.campaign = campaign
            self.pending = pending
            self.leased = leased
            self.overdue = overdue
        }
    }

    /// Without test runs.
    package var runs: [RunState: Int]
    package var queues: [Queue]
    /// Of the write-ahead log.
    package var logBytes: Int
    /// Runs that paused themselves, by why; without test runs.
    package var halts: [RunHalt: Int] = [:]
    /// Runs that lists leave out, see ``RunLog/unreadableRuns()``.
    package var unreadableRuns = 0
    /// Plans that wait for signatures.
    package var openApprovals = 0
    /// Messages that webhooks have not taken yet.
    package var webhookMessages = 0
    /// When the oldest of those messages was written; `nil` if there is none.
    package var oldestWebhookMessage: Timestamp?
    /// Feeds whose last poll failed.
    package var failingFeeds = 0
    /// When `backup` last copied the store; `nil` if it never did.
    package var backedUpAt: Timestamp?
    /// When the first entry of the audit was made; `nil` if there is none.
    package var beganAt: Timestamp?

    package init(runs: [RunState: Int], queues: [Queue], logBytes: Int) {
        self.runs = runs
        self.queues = queues
        self.logBytes = logBytes
    }

    /// The number of paused runs that a person paused.
    package var pausedByPeople: Int { max(0, (runs[.paused] ?? 0) - halts.values.reduce(0, +)) }

    /// Counts a run without a recorded reason as unreachable, as ``RunHalt`` of earlier versions did.
    package mutating func countHalts(_ rows: [(halt: String?, count: Int)]) {
        for row in rows { halts[row.halt.flatMap(RunHalt.init) ?? .unreachable, default: 0] += row.count }
    }
}

/// One batch of a freeze: how many deliveries were written, and how many of them as suppressed, by reason.
package struct FrozenBatch: Hashable, Sendable {
    package var audience: Int
    package var suppressed: [SuppressionReason: Int]

    package init(_ decisions: some Sequence<FreezePolicy.Decision>) {
        (audience, suppressed) = (0, [:])
        for decision in decisions {
            audience += 1
            if let reason = decision.suppression { suppressed[reason, default: 0] += 1 }
        }
    }
}

/// What the server of a store tells of itself, for metrics and `doctor`: read from its own views, and cheap to ask for.
package struct ServerObservation: Hashable, Sendable {
    /// One whose rows change with every batch of pushes.
    package struct Table: Hashable, Sendable {
        package var name: String
        package var liveRows, deadRows, bytes: Int
        /// By the server itself; nil: never yet.
        package var autovacuumedAt: Timestamp?

        package init(name: String, liveRows: Int, deadRows: Int, bytes: Int, autovacuumedAt: Timestamp?) {
            self.name = name
            self.liveRows = liveRows
            self.deadRows = deadRows
            self.bytes = bytes
            self.autovacuumedAt = autovacuumedAt
        }
    }

    /// A transaction that is open, and keeps the server from clearing away what later ones have replaced.
    package struct Transaction: Hashable, Sendable {
        package var age: Duration
        /// For a person: `session 4711 (psql, idle in transaction)`.
        package var who: String

        package init(age: Duration, who: String) {
            self.age = age
            self.who = who
        }
    }

    /// Nil: there is none.
    package var oldestTransaction: Transaction?
    /// Of other users' sessions, too.
    package var seesAllSessions = true
    /// Of all databases of the server.
    package var connections = 0
    package var connectionsMax = 0
    /// That are left for users like ours.
    package var connectionsForUsers = 0
    /// A daemon has up to so many.
    package var connectionsPerSender = 0
    package var bytes = 0
    package var tables: [Table] = []
    package var hasAutovacuum = true
    package var hasFsync = true
    package var hasFullPageWrites = true

    package init() {}
}
