package import Model
package import Store

/// A transaction of either engine, passed to a closure that runs on its thread.
///
/// Statements are written once for both engines. The values of `$1`, `$2` and so on are passed in order, and rows
/// are read by column number. ``dialect`` has the differences between the engines.
package protocol SQLSession: SendableMetatype {
    associatedtype Fields: SQLFields

    static var dialect: SQLDialect { get }

    /// Executes a statement and returns the number of rows it changed.
    @discardableResult
    func execute(_ statement: SQLStatement, values: [any SQLValue]) throws -> Int

    /// Returns every row, converted by `read`.
    func all<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (Fields) throws -> Value
    ) throws -> [Value]

    /// Calls `body` for each row as it arrives, for results too large for memory.
    func each(_ statement: SQLStatement, values: [any SQLValue], body: (Fields) throws -> Void) throws

    /// Executes one statement for each row of values, in one round trip. Returns the number of rows that each changed.
    @discardableResult
    func execute(_ statement: SQLStatement, each rows: [[any SQLValue]]) throws -> [Int]

    /// Whether times come from the caller's clock; see ``RelationalStore/goesByCallersClock``.
    var goesByCallersClock: Bool { get }

    /// Blocks other writers of a table until the transaction ends; readers continue. Fails as busy if the lock is not
    /// free within the limit.
    func lock(table: String, within limit: Duration?) throws

    /// Runs `body`, which only reads, and gives back the locks on the tables that it read.
    ///
    /// On PostgreSQL a statement locks each table and each of its indexes until the transaction ends, and all sessions
    /// share a limited number of such locks. Use this for a loop over the tables of runs.
    func keepingNoLocks<Value>(_ body: () throws -> Value) throws -> Value

    /// Records an action and its actor, and returns the event's id. No other transaction can record an event until this
    /// one ends, so call it late.
    @discardableResult
    func record(
        _ kind: EventKind, run: Int64?, by actor: Actor, _ detail: String, files: [String: String], now: Timestamp
    ) throws -> Int64

    /// Records the restore of a backup under the number `number`.
    func record(restored detail: String, number: Int64, by actor: Actor, now: Timestamp) throws

    /// Skips ids that the store may have assigned in the lost time, in every table but `event`. `apns-id`, collapse ids
    /// and `webhook-id` contain such ids, and must stay unique.
    func skipNumbers(of gap: RestoreGap) throws

    /// Returns the store's time: the caller's moment, or the server's time.
    func moment(_ now: Timestamp) throws -> Timestamp

    /// Creates the storage for the deliveries of a new run.
    func makeDeliveries(of run: Int64) throws

    /// Returns `false` once the run's outcomes were dropped with their table.
    func hasDeliveries(of run: Int64) throws -> Bool

    /// Returns whether an index finds failed deliveries by reason.
    func hasFailedIndex(of run: Int64) throws -> Bool

    /// Drops the data that only an unfinished run needs.
    func ended(run: Int64) throws

    // The senders of a run. On SQLite the owner in the run's row is the only one.

    /// Locks the run's senders, leases and stages, in this order, until the transaction ends.
    func lockWork(of run: Int64) throws
    func senders(of run: Int64) throws -> [String]
    /// Returns whether `owner` is a sender of the run, and locks that fact until the transaction ends.
    func isSender(_ owner: String, of run: Int64) throws -> Bool
    /// Adds a sender to the run, and removes the dead ones.
    func join(_ sender: String, to run: Int64, _ isAlive: OwnerLiveness.IsAlive) throws
    /// Removes senders from the run.
    ///
    /// - Parameter owner: the sender that leaves; `nil` for all of them.
    func leave(_ run: Int64, _ owner: String?) throws

    /// Replaces the endpoint holds of `owner`, and removes those of senders that no longer send the run.
    func replaceHolds(of run: Int64, by owner: String, _ holds: [EndpointHold]) throws

    /// Writes the one delivery of a test run.
    func freeze(_ chosen: ChosenDevice, run: Int64, now: Timestamp) throws

    // Audiences.

    /// Returns a condition on `device` that needs no further brackets. The engines need different texts for good
    /// query plans.
    static func sql(of audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String
    /// Decides about each device of an audience, in order of id, and returns the counts.
    ///
    /// - Parameters:
    ///   - window: the window of the silent budget to check.
    ///   - caps: the caps of a run with this audience.
    func reach(
        _ count: ReachCount, _ selection: AudienceSelection, window: RollingWindow?, caps: CapForecast?
    ) throws -> Reach

    // Reports about a device.

    /// Returns the latest runs that included the device, at most `had`, and the latest that did not, at most `leftOut`,
    /// without tests. Both lists are newest first. ``DeviceDelivery/isLeased`` is still `false`.
    func runs(ofDevice device: Int64, had: Int, leftOut: Int) throws -> (had: [DeviceDelivery], leftOut: [Int64])

    // Data that `verify` compares.

    func eventFaults() throws -> Verification.Check
    func leaseCheck() throws -> LeaseCheck
    /// Returns `nil` if the store does not record the budgets that runs used.
    func recordedBudgets() throws -> RecordedBudgets?
    func caps(of keys: Set<CapKey>) throws -> CapUsage

    // Leases and outcomes.

    /// Reads the bucket of a pace, and locks it until the transaction ends. If the server's clock counts, its
    /// reading is written to `clocks`.
    func lockBucket(of pace: SharedPace, _ clocks: inout ClockReading) throws -> PaceBucket

    /// Records outcomes, and returns the counts of the run. A delivery that already has its outcome is not changed.
    func settle(_ settlements: [Settlement], run: Int64, now: Timestamp) throws -> DeliveryCounts
    /// Returns a list for each device that is gone: the devices of its user in the app, with their deliveries in the
    /// run. A list is empty if the device has no user. A list has at most one device more than
    /// ``UserFallback/devicesMax``.
    func devicesOfUsers(of gone: [Int64], in run: Int64) throws -> [[UserFallback.Candidate]]
}

/// A row with columns numbered from 0. The requested type must fit the column. Only the `OrNil` functions accept NULL.
package protocol SQLFields: SendableMetatype {
    func int64(_ column: Int) throws -> Int64
    func int64OrNil(_ column: Int) throws -> Int64?
    func int(_ column: Int) throws -> Int
    func intOrNil(_ column: Int) throws -> Int?
    func bool(_ column: Int) throws -> Bool
    func boolOrNil(_ column: Int) throws -> Bool?
    func double(_ column: Int) throws -> Double
    func text(_ column: Int) throws -> String
    func textOrNil(_ column: Int) throws -> String?
    /// A value of ``SQLDialect/list(_:_:)``.
    func texts(_ column: Int) throws -> [String]
    func bytes(_ column: Int) throws -> [UInt8]
    func bytesOrNil(_ column: Int) throws -> [UInt8]?
    func timestamp(_ column: Int) throws -> Timestamp
    func timestampOrNil(_ column: Int) throws -> Timestamp?
}

// An engine's session may declare the same functions with its own types, which then take precedence.
extension SQLSession {
    /// Waits for the lock until the transaction's own limit.
    package func lock(table: String) throws { try lock(table: table, within: nil) }

    @discardableResult @_disfavoredOverload
    package func execute(_ statement: SQLStatement, _ values: any SQLValue...) throws -> Int {
        try execute(statement, values: values)
    }

    @_disfavoredOverload
    package func all<Value>(
        _ statement: SQLStatement, _ values: any SQLValue..., read: (Fields) throws -> Value
    ) throws -> [Value] {
        try all(statement, values: values, read: read)
    }

    /// Returns the first row, converted by `read`; `nil` if there is none.
    @_disfavoredOverload
    package func first<Value>(
        _ statement: SQLStatement, _ values: any SQLValue..., read: (Fields) throws -> Value
    ) throws -> Value? {
        try all(statement, values: values, read: read).first
    }

    /// Passes the rows to `batch`, some thousand at a time, and returns their number. Rows for which `read` returns
    /// `nil` are left out.
    func batches<Value>(
        _ statement: SQLStatement, values: [any SQLValue], of size: Int = 5_000, read: (Fields) throws -> Value?,
        batch: ([Value]) throws -> Void
    ) throws -> Int {
        var found: [Value] = []
        var count = 0
        try each(statement, values: values) { row in
            guard let value = try read(row) else { return }
            found.append(value)
            guard found.count == size else { return }
            count += found.count
            try batch(found)
            found.removeAll(keepingCapacity: true)
        }
        if !found.isEmpty { try batch(found) }
        return count + found.count
    }

    /// Returns all rows that can be read. It skips a row with a value that cannot be read.
    package func readable<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (Fields) throws -> Value
    ) throws -> [Value] {
        try all(statement, values: values) { try ReadableRows.value($0, read) }.compactMap(\.self)
    }

    @discardableResult
    package func record(
        _ kind: EventKind, run: Int64? = nil, by actor: Actor, _ detail: String, now: Timestamp
    ) throws -> Int64 {
        try record(kind, run: run, by: actor, detail, files: [:], now: now)
    }
}
