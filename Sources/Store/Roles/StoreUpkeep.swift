package import Model

/// The store as a whole: proof, copies, retention and size.
package protocol StoreUpkeep: Sendable {
    /// Where the store is, for a person.
    var path: String { get }

    /// Set if the store was found to be a restored backup when this process opened it.
    var restored: RestoredStore? { get }

    /// Returns the time that the store knows nothing of; `nil` if it was never restored from a backup.
    func restoreGap() async throws -> RestoreGap?

    /// Checks everything the store promises, each check in a snapshot of its own, so that it may run beside senders
    /// without holding back the log for long. Reads the whole file more than once; changes nothing, and works on a store
    /// opened for reading. A check that damage keeps from its end has that as its fault; one that somebody else at work on
    /// the file keeps from it throws, since that says nothing about the store.
    ///
    /// What it cannot find: a slot of the silent budget made longer by hand in a run that was recovered after a crash, where
    /// a late answer does the same; slots of attempts before a delivery's last; and anything about the times of slots
    /// where the clock was set back.
    ///
    /// - Parameters:
    ///   - budgets: by topic, as configured now. SQLite also has on record what each run was sent under, and holds a push
    ///     against the weaker budget: what has no such record is a warning. On PostgreSQL a budget that was lowered in the
    ///     last two windows makes pushes of before look like too many.
    ///   - faultsMax: how many of each check are listed; all are counted, but for damage of the file itself.
    func verify(
        budgets: [String: Configuration.SilentBudget], faultsMax: Int
    ) async throws -> Verification

    /// Checks every background push in the ledger against one budget for all topics.
    func verifyLedger(_ budget: Configuration.SilentBudget) async throws -> LedgerCheck

    /// Copies the store as it is at one moment to another file, while others read and write, and checks the copy. It
    /// gets its name when it is whole, readable by its owner only.
    ///
    /// ``StoreError/backupExists(path:)`` when there is a file already, unless `overwriting`.
    func backUp(to path: String, overwriting: Bool) async throws -> BackupSummary

    /// Deletes the outcomes by device of the runs that were over before `moment`. What their reports say stays, kept
    /// as a summary of some rows per run; the devices' histories lose these runs. With `dryRun` they are only counted.
    ///
    /// Works in batches, each a transaction, so that senders go on beside it, memory stays flat, and what was stopped
    /// in the middle goes on with the next call. The space is used again by what is written next; ``shrink()`` gives it
    /// back to the disk. Unless it is a dry run, an event says who pruned how many.
    func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> OutcomePruneCounts

    /// Rewrites the file without its free space. Needs about as much disk again for the while, and keeps every writer
    /// waiting: for hours without runs only.
    func shrink() async throws

    /// How much of the file is in use.
    func size() async throws -> StoreSize

    /// For metrics, see ``StoreObservation``.
    func observation(now: Timestamp) async throws -> StoreObservation

    /// What keeps an `audience_sql` from being asked here, whatever it says; nil: nothing does.
    func audienceSQLObstacle() async throws -> AudienceSQLFault?

    /// The same of the server that keeps it; nil: none does.
    func server() async throws -> ServerObservation?

    /// Problems SQLite finds in its own structure; empty is good. Reads the whole file.
    func integrity() async throws -> [String]

    /// Waits for what runs and closes the file. Calling a method afterwards is an error.
    func close() throws
}

extension StoreUpkeep {
    package var restored: RestoredStore? { nil }

    package func restoreGap() async throws -> RestoreGap? { nil }

    package func server() async throws -> ServerObservation? { nil }
}

/// What a store is: every role. Whoever wires a program together passes it on; users take the roles they need.
package typealias AllRoles = DeliveryQueue & RunLog & StopLog & DeviceRegistry & OutcomeReader & DaemonLog
    & ProviderTokenLog & AccessLog & ApprovalLog & ChangeLog & StoreUpkeep & StoreTransfer

/// What a process that opens a store may do to it.
package enum StoreAccess: Hashable, Sendable {
    /// Nothing is written, not even beside it: no lock is waited for, and a file system that is read-only will do.
    case reading
    /// It must be there; an older one is brought up to date.
    case writing
    /// The same, and made where there is none.
    case making
    /// As ``writing``, also a store that is being moved to another place, or was.
    case departing
    /// As ``making``, also a store that is not whole yet, or has come from another place.
    case arriving

    /// Whether it may be made where there is none.
    package var makes: Bool { self == .making || self == .arriving }
    /// Whether it is for ``StoreTransfer`` alone.
    package var isForMove: Bool { self == .departing || self == .arriving }
}
