package import Model
package import Store

/// A transaction of either engine, in the hands of a closure that runs on its thread.
///
/// Statements are written once for both engines: values are given for `$1`, `$2`, rows are read by column number, and
/// what the engines say differently is a word of ``dialect``.
package protocol SQLSession: SendableMetatype {
    associatedtype Fields: SQLFields

    static var dialect: SQLDialect { get }

    /// Returns how many rows it touched.
    @discardableResult
    func execute(_ statement: SQLStatement, values: [any SQLValue]) throws -> Int

    /// Returns every row, read.
    func all<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (Fields) throws -> Value
    ) throws -> [Value]

    /// Row by row as they come, for answers too large to be held.
    func each(_ statement: SQLStatement, values: [any SQLValue], body: (Fields) throws -> Void) throws

    /// Executes one statement for each row of values, in one round trip.
    func execute(_ statement: SQLStatement, each rows: [[any SQLValue]]) throws

    /// As ``RelationalStore/goesByCallersClock``.
    var goesByCallersClock: Bool { get }

    /// Keeps everybody else from writing to a table until the transaction ends; readers go on.
    func lock(table: String) throws

    /// Puts on record who did what, and returns the event's number. Until the transaction ends nobody else puts anything on
    /// record: to be called late.
    @discardableResult
    func record(
        _ kind: EventKind, run: Int64?, by actor: Actor, _ detail: String, files: [String: String], now: Timestamp
    ) throws -> Int64

    /// By whose clock the store goes: the caller's moment, or the server's.
    func moment(_ now: Timestamp) throws -> Timestamp

    /// Makes what holds the deliveries of a new run.
    func makeDeliveries(of run: Int64) throws

    /// False once its outcomes were dropped with their table.
    func hasDeliveries(of run: Int64) throws -> Bool

    /// Whether what failed is found by its reason.
    func hasFailedIndex(of run: Int64) throws -> Bool

    /// Drops what is kept only for a run that is under way.
    func ended(run: Int64) throws

    // The senders of a run. On SQLite its owner is the only one, as its row says.

    /// Locks the run's senders, leases and stages, in this order, until the transaction ends.
    func lockWork(of run: Int64) throws
    func senders(of run: Int64) throws -> [String]
    /// A sender stays one until the transaction ends.
    func isSender(_ owner: String, of run: Int64) throws -> Bool
    /// Removes the senders that are gone.
    func join(_ sender: String, to run: Int64, _ isAlive: OwnerLiveness.IsAlive) throws
    /// - Parameter owner: the sender that leaves; `nil`: all of them.
    func leave(_ run: Int64, _ owner: String?) throws

    /// What `owner` says of endpoints in trouble; others that send of the run no more say nothing.
    func replaceHolds(of run: Int64, by owner: String, _ holds: [EndpointHold]) throws

    /// Writes the one delivery of a run that tests.
    func freezeTest(_ device: Int64, of campaign: Campaign, variant: Int?, run: Int64, now: Timestamp) throws

    /// Drops what no cap counts any more.
    func pruneCaps(at now: Timestamp) throws

    // Audiences, which each store compiles in its own way.

    /// - Parameter defined: a segment as it would be.
    func count(
        _ audience: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)?,
        now: Timestamp
    ) throws -> Int
    /// Throws what a run with this audience would.
    func requireUsable(_ audience: AudienceExpression, now: Timestamp) throws
    /// - Parameter range: of device numbers; nil: all.
    func devices(
        of audience: AudienceExpression, within range: ClosedRange<Int64>?, limit: Int, now: Timestamp
    ) throws -> [StoredDevice]
    /// Along the members' primary key.
    func members(of segment: Int64, after device: Int64, limit: Int) throws -> [StoredDevice]

    // What `verify` compares with.

    func eventFaults() throws -> Verification.Check
    func leaseCheck() throws -> LeaseCheck
    /// Nil: the store keeps no record of the budgets that runs were sent by.
    func recordedBudgets() throws -> RecordedBudgets?
    func caps(of keys: Set<CapKey>) throws -> CapBook

    // What is in flight, as each store keeps it.

    /// Settles all that is in flight as unknown: its outcome is lost, and nothing more is done about it.
    func closeLeases(of run: Int64, now: Timestamp) throws
    /// Each lease with its deliveries that have no outcome.
    func leasesLeft(of run: Int64) throws -> [LeftLease]
}

/// A row: columns by number, from 0. What is asked for must fit what the column is; NULL fits the `OrNil` ones only.
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
    func bytes(_ column: Int) throws -> [UInt8]
    func bytesOrNil(_ column: Int) throws -> [UInt8]?
    func timestamp(_ column: Int) throws -> Timestamp
    func timestampOrNil(_ column: Int) throws -> Timestamp?
}

// An engine's session may have the same with types of its own, which then goes first.
extension SQLSession {
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

    /// The first row, read; nil when there is none.
    @_disfavoredOverload
    package func first<Value>(
        _ statement: SQLStatement, _ values: any SQLValue..., read: (Fields) throws -> Value
    ) throws -> Value? {
        try all(statement, values: values, read: read).first
    }

    /// All rows that can be read: one with a value that cannot be read never makes a list fail.
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
