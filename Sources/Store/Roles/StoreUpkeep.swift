package import Model

/// The store as a whole: verification, copies, retention and size.
package protocol StoreUpkeep: Sendable {
    /// The place of the store, for a person.
    var path: String { get }

    /// The restored backup that this process found when it opened the store; `nil` if the store was not a restored
    /// backup.
    var restored: RestoredStore? { get }

    /// Marks the store as restored from a backup that was made at `madeAt`, by means that leave no mark, such as
    /// `pg_restore`. The effect is that of a restored copy: open runs wait for a person, occurrences and feed items of
    /// the lost time start no run, and numbers skip. Returns `nil` if the store has this mark already.
    ///
    /// Throws ``StoreError/inUse(path:reason:)`` while a sender is alive.
    func markRestored(since madeAt: Timestamp, by actor: Actor, now: Timestamp) async throws -> RestoredStore?

    /// Checks everything that the store promises. Each check has its own snapshot, so that it runs beside senders
    /// without holding back the log for long. The method reads the whole file more than once, changes nothing, and
    /// works on a store that is opened for reading. If damage stops a check, the damage is the fault of that check. If
    /// another process on the file stops a check, the method throws, because that says nothing about the store.
    ///
    /// The method cannot find these faults:
    /// - a slot of the silent budget that was made longer by hand, in a run that was recovered after a crash: a late
    ///   response has the same effect
    /// - slots of all attempts of a delivery but the last one
    /// - anything about the times of slots if the clock was set back
    ///
    /// - Parameters:
    ///   - budgets: the budgets by topic, as configured now. SQLite also records the budget under which each run was
    ///     sent, and checks a push against the weaker budget. A push without such a record is a warning. On PostgreSQL,
    ///     a budget that was lowered in the last two windows makes earlier pushes look like too many.
    ///   - faultsMax: the number of faults that are listed per check. All are counted, except damage of the file
    ///     itself.
    func verify(
        budgets: [String: Configuration.SilentBudget], faultsMax: Int
    ) async throws -> Verification

    /// Checks every background push in the ledger against one budget for all topics.
    func verifyLedger(_ budget: Configuration.SilentBudget) async throws -> LedgerCheck

    /// Copies the store as it is at one moment to another file, while others read and write, and checks the copy. The
    /// copy gets its name when it is whole. Only its owner may read it.
    ///
    /// Throws ``StoreError/backupExists(path:)`` if there is a file already, unless `overwriting`.
    func backUp(to path: String, overwriting: Bool) async throws -> BackupSummary

    /// Deletes the outcomes per device of the runs that ended before `moment`. The reports of these runs stay, as a
    /// summary of some rows per run. The devices' histories lose these runs. With `dryRun` the outcomes are only
    /// counted.
    ///
    /// Works in batches, each a transaction. So senders continue meanwhile, memory use is constant, and the next call
    /// continues an interrupted one. Later writes reuse the freed space; ``shrink()`` returns it to the disk. Unless
    /// it is a dry run, an event records the actor and the counts.
    func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> OutcomePruneCounts

    /// Rewrites the file without its free space. Meanwhile it needs about as much disk again, and every writer waits.
    /// Call it only in hours without runs.
    func shrink() async throws

    /// Returns how much of the file is in use.
    func size() async throws -> StoreSize

    /// Returns figures for metrics, see ``StoreObservation``.
    func observation(now: Timestamp) async throws -> StoreObservation

    /// Returns the fault that stops every `audience_sql` here, whatever its text; `nil` if there is none.
    func audienceSQLObstacle() async throws -> AudienceSQLFault?

    /// Returns figures of the server that keeps the store; `nil` if no server does.
    func server() async throws -> ServerObservation?

    /// Returns the problems that SQLite finds in its own structure; empty if there are none. Reads the whole file.
    func integrity() async throws -> [String]

    /// Waits for running calls and closes the file. Calling a method afterwards is an error.
    func close() throws
}

extension StoreUpkeep {
    package var restored: RestoredStore? { nil }

    package func server() async throws -> ServerObservation? { nil }
}

/// All roles of a store. The wiring of a program passes the store as this type. All other code takes only the roles
/// that it needs.
package typealias AllRoles = DeliveryQueue & RunLog & RunOwnership & AuditLog & StopLog & DeviceRegistry & OutcomeReader
    & DaemonLog & ProviderTokenLog & AccessLog & ApprovalLog & PlanLog & OccurrenceValueLog & ChangeLog & FeedbackLog
    & StoreUpkeep
    & StoreTransfer

/// The access of a process to a store that it opens.
package enum StoreAccess: Hashable, Sendable {
    /// The process writes nothing, not even files beside the store, and waits for no lock. A read-only file system is
    /// enough.
    case reading
    /// The store must exist. An older one is migrated.
    case writing
    /// As ``writing``, and the store is created if there is none.
    case making
    /// As ``writing``, and also for a store that is being moved to another place, or was.
    case departing
    /// As ``making``, and also for a store that is not whole yet, or has come from another place.
    case arriving

    /// Whether the store may be created if there is none.
    package var makes: Bool { self == .making || self == .arriving }
    /// Whether the access is for ``StoreTransfer`` only.
    package var isForMove: Bool { self == .departing || self == .arriving }
}
