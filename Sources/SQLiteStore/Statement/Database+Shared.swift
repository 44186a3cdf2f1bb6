package import GRDB
package import Model
// A module that imports this one needs the store's methods, and most of them are in `RelationalStore`.
@_exported public import RelationalStore
package import Store

/// A transaction of SQLite for the statements that both engines share. Each connection prepares a kept statement once.
extension Database: SQLSession {
    package static var dialect: SQLDialect { .sqlite }

    package func execute(_ statement: SQLStatement, values: [any SQLValue]) throws -> Int {
        let prepared = try prepare(statement, values)
        try prepared.run()
        return prepared.changes
    }

    package func all<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (SQLiteFields) throws -> Value
    ) throws -> [Value] {
        var found: [Value] = []
        try each(statement, values: values) { found.append(try read($0)) }
        return found
    }

    package func each(_ statement: SQLStatement, values: [any SQLValue], body: (SQLiteFields) throws -> Void) throws {
        let rows = try prepare(statement, values)
        defer { rows.reset() }
        let fields = SQLiteFields(rows)
        while try rows.step() { try body(fields) }
    }

    @discardableResult
    package func execute(_ statement: SQLStatement, each rows: [[any SQLValue]]) throws -> [Int] {
        guard let count = rows.first?.count else { return [] }
        let prepared = try RowStatement(self, statement)
        let parameters = prepared.parameters(count)
        return try rows.map { values in
            try prepared.bind(values, to: parameters)
            try prepared.run()
            return prepared.changes
        }
    }

    package var goesByCallersClock: Bool { true }

    /// Does nothing: only one transaction writes at a time.
    package func lock(table: String, within limit: Duration?) {}

    package func record(
        _ kind: EventKind, run: Int64?, by actor: Actor, _ detail: String, files: [String: String], now: Timestamp
    ) throws -> Int64 {
        try EventLog.record(self, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
    }

    package func record(restored detail: String, number: Int64, by actor: Actor, now: Timestamp) throws {
        try EventLog.record(
            self, number: number, kind: .storeRestored, run: nil, actor: actor, detail: detail, now: now)
    }

    package func skipNumbers(of gap: RestoreGap) throws { try BackupMarks.skipNumbers(of: gap, self) }

    package func moment(_ now: Timestamp) -> Timestamp { now }

    package func makeDeliveries(of run: Int64) {}

    package func hasDeliveries(of run: Int64) -> Bool { true }

    package func hasFailedIndex(of run: Int64) -> Bool { true }

    package func ended(run: Int64) {}

    package func lockWork(of run: Int64) {}

    package func senders(of run: Int64) -> [String] { [] }

    package func isSender(_ owner: String, of run: Int64) throws -> Bool {
        try RunOwner.locked(self, run).owner == owner
    }

    package func join(_ sender: String, to run: Int64, _ isAlive: OwnerLiveness.IsAlive) {}

    package func leave(_ run: Int64, _ owner: String?) {}

    package func replaceHolds(of run: Int64, by owner: String, _ holds: [EndpointHold]) throws {
        try execute("DELETE FROM endpoint_hold WHERE run_id = $1", run)
        try execute(
            """
            INSERT INTO endpoint_hold (run_id, environment, endpoint, status, since, next_try_at)
            VALUES ($1, $2, $3, $4, $5, $6)
            """, each: holds.map { [run, $0.environment.code, $0.endpoint, $0.status, $0.since, $0.nextTryAt] })
    }

    package func freeze(_ chosen: ChosenDevice, run: Int64, now: Timestamp) throws {
        try FrozenDeliveries(chosen).insert(into: self, run: run, at: now)
    }

    package static func sql(of audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        AudienceCompiler.sql(audience, &condition)
    }

    package func keepingNoLocks<Value>(_ body: () throws -> Value) throws -> Value { try body() }

    package func settle(_ settlements: [Settlement], run: Int64, now: Timestamp) throws -> DeliveryCounts {
        try SettlementBatch(self, run: run, now: now).record(settlements)
    }

    package func eventFaults() throws -> Verification.Check { try EventChain(self).faults() }

    package func leaseCheck() throws -> LeaseCheck { try LeaseCheck(self) }

    package func recordedBudgets() throws -> RecordedBudgets? { try SilentLedger(self).recordedBudgets() }

    package func caps(of keys: Set<CapKey>) throws -> CapUsage {
        var usage = CapUsage()
        try CapLedger(self).read(Array(keys), into: &usage)
        return usage
    }

    /// Prepares a statement with its values. Reset it after its last row.
    func prepare(_ statement: SQLStatement, _ values: [any SQLValue]) throws -> RowStatement {
        let prepared = try RowStatement(self, statement)
        try prepared.bind(values)
        return prepared
    }
}

extension RowStatement {
    /// Binds the values of `$1`, `$2` and so on.
    func bind(_ values: [any SQLValue]) throws { try bind(values, to: parameters(values.count)) }

    fileprivate func bind(_ values: [any SQLValue], to parameters: [Parameter]) throws {
        for (value, parameter) in zip(values, parameters) { try bind(value.argument, parameter) }
    }

    /// Returns the parameters `$1`, `$2` and so on, for statements that run many times.
    fileprivate func parameters(_ count: Int) -> [Parameter] { (0..<count).map { parameter("$\($0 + 1)") } }

    /// Binds one value.
    ///
    /// - Parameter parameter: 0 if the statement's text uses the value only on the other engine. The value is then
    ///   skipped.
    private func bind(_ argument: SQLArgument, _ parameter: Parameter) throws {
        guard parameter > 0 else { return }
        switch argument {
        case .integer(let value): try bind(value, parameter)
        case .real(let value): try bind(value, parameter)
        case .bool(let value): try bind(value.map { $0 ? Int64(1) : 0 }, parameter)
        case .text(let value): try bind(value, parameter)
        case .bytes(let value): if let value { try bind(value, parameter) } else { try bindNull(parameter) }
        case .texts(let values): try bind(StoredJSON.array(values), parameter)
        case .integers(let values): try bind("[\(values.map(String.init).joined(separator: ","))]", parameter)
        }
    }
}

/// The current row of a statement. A value of an unexpected type throws an error and does not end the process.
package struct SQLiteFields: SQLFields {
    private let row: RowStatement

    init(_ row: RowStatement) { self.row = row }

    package func int64(_ column: Int) throws -> Int64 {
        if case .found(let value) = row.integer(Int32(column)) { return value }
        throw unreadable(column, "a number")
    }
    package func double(_ column: Int) throws -> Double {
        try require(column, "a number", .real, or: .integer)
        return row.double(Int32(column))
    }
    package func text(_ column: Int) throws -> String {
        try require(column, "a text", .text)
        return row.text(Int32(column)) ?? ""
    }
    /// Returns the bytes of a blob, or of a text in UTF-8.
    package func bytes(_ column: Int) throws -> [UInt8] {
        try require(column, "bytes", .blob, or: .text)
        return row.bytes(Int32(column))
    }

    package func texts(_ column: Int) throws -> [String] {
        let list = try text(column)
        return list == "[]" ? [] : try StoredJSON.value(list)
    }

    package func int64OrNil(_ column: Int) throws -> Int64? {
        switch row.integer(Int32(column)) {
        case .found(let value): return value
        case .null: return nil
        case .other: throw unreadable(column, "a number")
        }
    }
    package func int(_ column: Int) throws -> Int { Int(try int64(column)) }
    package func intOrNil(_ column: Int) throws -> Int? { try int64OrNil(column).map(Int.init) }
    package func bool(_ column: Int) throws -> Bool { try int64(column) != 0 }
    package func boolOrNil(_ column: Int) throws -> Bool? { try int64OrNil(column).map { $0 != 0 } }
    package func textOrNil(_ column: Int) throws -> String? { try isNull(column) ? nil : text(column) }
    package func bytesOrNil(_ column: Int) throws -> [UInt8]? { try isNull(column) ? nil : bytes(column) }
    package func timestamp(_ column: Int) throws -> Timestamp { Timestamp(milliseconds: try int64(column)) }
    package func timestampOrNil(_ column: Int) throws -> Timestamp? {
        try int64OrNil(column).map(Timestamp.init(milliseconds:))
    }

    private func isNull(_ column: Int) -> Bool { row.isNull(Int32(column)) }

    private func require(
        _ column: Int, _ what: String, _ storage: RowStatement.Storage, or other: RowStatement.Storage? = nil
    ) throws {
        let found = row.storage(Int32(column))
        guard found != storage, found != other else { return }
        throw unreadable(column, what)
    }

    private func unreadable(_ column: Int, _ what: String) -> UnreadableValue {
        let found = row.storage(Int32(column)).summary
        return UnreadableValue("a stored value is \(found), and not \(what): column \(column) of \(row.sql)")
    }
}

extension SQLiteFileStore {
    package var goesByCallersClock: Bool { true }

    package func snapshot<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await read(cost, body)
    }

    package func transaction<Value: Sendable>(
        _ promise: WritePromise, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        switch promise {
        case .quick, .durableOnServer: try await write(body)
        case .quickOfSender: try await writeSending(body)
        case .durable: try await writeDurably(body)
        case .durableOfSender: try await writeDurably(patience: .ofSenders, body)
        }
    }

    package func beatBeforeClaim(_ sender: String) {}

    package func requireNotLost(_ sender: String, _ db: Database) {}

    package func requireNoSender(_ db: Database) {}

    package func living(_ db: Database) -> OwnerLiveness.IsAlive { isAlive }

    package func living(_ db: Database, at run: Int64) -> OwnerLiveness.IsAlive { isAlive }

    package func settleBeforeRelease(now: Timestamp) {}

    package func released(_ run: Int64, _ state: RunState) {}

    package var webhooksAhead: Duration {
        get { .zero }
        set {}
    }
}
