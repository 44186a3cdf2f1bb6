package import Model

/// The findings of a check of everything that a store promises, see ``StoreUpkeep/verify(budgets:faultsMax:)``.
package struct Verification: Hashable, Sendable {
    /// One promise, and its faults.
    package struct Check: Hashable, Sendable {
        /// Short and stable, for programs.
        package var name: String
        /// What must hold, in words.
        package var promise: String
        /// The number of all faults; a lower bound if ``isCountAtLeast``.
        package var faultCount: Int
        /// Whether the check stopped early, so that there may be more faults.
        package var isCountAtLeast: Bool
        /// The first faults.
        package var faults: [StoreFault]
        /// Possible faults: the record with which they would be compared is missing.
        package var warnings: [StoreFault]
        /// The number of compared things, for a check that would also pass if it compared nothing; `nil` if not
        /// counted.
        package var compared: Int?
        /// A fact for a person who reads the result. It is no fault.
        package var remark: String?

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

    /// Whether every promise holds.
    package var isSound: Bool { checks.allSatisfy { $0.faultCount == 0 } }
    package var faultCount: Int { checks.reduce(0) { $0 + $1.faultCount } }

    /// The checks of pushes against budgets and caps. Their faults do not mean that the data is damaged. The
    /// configuration may have changed since, and a faithful copy of a store has the same faults.
    private static let ofBudgets: Set = [LedgerScan.name, "silent_ledger", CapScan.name, CapLedgerCheck.name]

    /// Whether every promise about the data itself holds.
    package var isWhole: Bool { checks.allSatisfy { $0.faultCount == 0 || Self.ofBudgets.contains($0.name) } }
    /// The broken promises about budgets and caps.
    package var brokenBudgets: [Check] { checks.filter { $0.faultCount > 0 && Self.ofBudgets.contains($0.name) } }

    package subscript(name: String) -> Check? { checks.first { $0.name == name } }
}

/// One row, or set of rows, that breaks a promise. Holds no whole token.
package struct StoreFault: Hashable, Sendable {
    package var run: Int64?
    package var device: Int64?
    /// The last 8 characters of the device's token, if the device is stored.
    package var tokenEnd: String?
    /// What is wrong, without naming run and device again.
    package var what: String

    package init(run: Int64? = nil, device: Int64? = nil, _ what: String) {
        self.run = run
        self.device = device
        self.what = what
    }
}

/// The contents of a backup.
package struct BackupSummary: Hashable, Sendable {
    package var path: String
    /// The version of the schema.
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

/// The activity in a store at one moment, for metrics. It is cheap to read, whatever the store holds.
package struct StoreObservation: Hashable, Sendable {
    /// A run that is not over.
    package struct Queue: Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        /// How long the first delivery that waited for a time has been due; zero while none is due.
        package var overdue: Duration

        package init(run: Int64, campaign: String, pending: Int, leased: Int, overdue: Duration) {
            self.run = run
            self.campaign = campaign
            self.pending = pending
            self.leased = leased
            self.overdue = overdue
        }
    }

    /// The number of runs by state, without test runs.
    package var runs: [RunState: Int]
    package var queues: [Queue]
    /// The size of the write-ahead log.
    package var logBytes: Int
    /// The number of runs that paused themselves, by reason, without test runs.
    package var halts: [RunHalt: Int] = [:]
    /// Runs that lists leave out, see ``RunLog/unreadableRuns()``.
    package var unreadableRuns = 0
    /// Plans that wait for signatures.
    package var openApprovals = 0
    /// Messages that webhooks have not yet accepted.
    package var webhookMessages = 0
    /// When the oldest of those messages was written; `nil` if there is none.
    package var oldestWebhookMessage: Timestamp?
    /// Feeds whose last poll failed.
    package var failingFeeds = 0
    /// When `backup` last copied the store; `nil` if it never did.
    package var backedUpAt: Timestamp?
    /// When the first entry of the audit log was written; `nil` if there is none.
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

/// One batch of a freeze: the number of deliveries written, and the suppressed ones among them by reason.
package struct FrozenBatch: Hashable, Sendable {
    package var audience: Int
    package var suppressed: [SuppressionReason: Int]

    package init(audience: Int, suppressed: [SuppressionReason: Int]) {
        self.audience = audience
        self.suppressed = suppressed
    }
}

/// The figures that the server of a store gives about itself, for metrics and `doctor`. They come from its own views
/// and are cheap to read.
package struct ServerObservation: Hashable, Sendable {
    /// A table whose rows change with every batch of pushes.
    package struct Table: Hashable, Sendable {
        package var name: String
        package var liveRows, deadRows, bytes: Int
        /// When the server itself last vacuumed the table; `nil` if it never did.
        package var autovacuumedAt: Timestamp?

        package init(name: String, liveRows: Int, deadRows: Int, bytes: Int, autovacuumedAt: Timestamp?) {
            self.name = name
            self.liveRows = liveRows
            self.deadRows = deadRows
            self.bytes = bytes
            self.autovacuumedAt = autovacuumedAt
        }
    }

    /// An open transaction, which keeps the server from removing rows that later transactions have replaced.
    package struct Transaction: Hashable, Sendable {
        package var age: Duration
        /// For a person: `session 4711 (psql, idle in transaction)`.
        package var who: String

        package init(age: Duration, who: String) {
            self.age = age
            self.who = who
        }
    }

    /// `nil` if there is none.
    package var oldestTransaction: Transaction?
    /// Whether the figures include the sessions of other users.
    package var seesAllSessions = true
    /// The number of connections to all databases of the server.
    package var connections = 0
    package var connectionsMax = 0
    /// The number of connections that are left for ordinary users, such as Fanfare's.
    package var connectionsForUsers = 0
    /// The maximum number of connections of a daemon.
    package var connectionsPerSender = 0
    /// The number of locks on tables and indexes that all transactions together can hold at least.
    package var locksMax = Int.max
    /// The number of locks of a transaction that reads all tables of runs, such as that of `pg_dump`.
    package var locksOfRuns = 0
    package var bytes = 0
    package var tables: [Table] = []
    /// Why the server refuses more connections to this process; `nil` if it does not.
    package var refusal: String?
    package var hasAutovacuum = true
    package var hasFsync = true
    package var hasFullPageWrites = true

    package init() {}
}
