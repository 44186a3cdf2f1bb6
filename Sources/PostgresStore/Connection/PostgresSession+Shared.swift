package import Model
// A module that imports this one needs the store's methods, and most of them are in `RelationalStore`.
@_exported public import RelationalStore
package import Store

extension PostgresRow: SQLFields {}

/// The statements that both engines share.
extension PostgresSession: SQLSession {
    package static var dialect: SQLDialect { .postgres }

    @discardableResult
    package func execute(_ statement: SQLStatement, values: [any SQLValue]) throws -> Int {
        try rows(statement, values: values.map(Self.value)).affected
    }

    package func all<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (PostgresRow) throws -> Value
    ) throws -> [Value] {
        try rows(statement, values: values.map(Self.value)).map(read)
    }

    package func each(_ statement: SQLStatement, values: [any SQLValue], body: (PostgresRow) throws -> Void) throws {
        try each(statement, values: values.map(Self.value), body: body)
    }

    /// Calls `body` for each row as ``each(_:values:body:)`` does, but reads some rows at a time. So `body` and
    /// `afterBatch` may execute other statements.
    func eachInBatches(
        _ query: String, values: [any SQLValue], of size: Int, _ body: (PostgresRow) throws -> Void,
        afterBatch: () throws -> Void = {}
    ) throws {
        try execute(.once("DECLARE batches NO SCROLL CURSOR FOR \(query)"), values: values)
        while true {
            let rows = try self.rows(.once("FETCH \(size) FROM batches"), values: [])
            for row in rows { try body(row) }
            try afterBatch()
            if rows.isEmpty { break }
        }
        try run("CLOSE batches")
    }

    @discardableResult
    package func execute(_ statement: SQLStatement, each rows: [[any SQLValue]]) throws -> [Int] {
        try pipeline { batch in
            for values in rows { batch.add(statement, values: values.map(Self.value)) }
        }.map(\.affected)
    }

    package var goesByCallersClock: Bool { time == .caller }

    package func lock(table: String, within limit: Duration?) throws {
        let lock = "LOCK TABLE \(table) IN SHARE ROW EXCLUSIVE MODE"
        guard let limit else { return try run(lock) }
        try run("SET LOCAL lock_timeout = \(limit.wholeMilliseconds); \(lock); SET LOCAL lock_timeout TO DEFAULT")
    }

    package func record(
        _ kind: EventKind, run: Int64?, by actor: Actor, _ detail: String, files: [String: String], now: Timestamp
    ) throws -> Int64 {
        try EventLog.record(self, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
    }

    package func record(restored detail: String, number: Int64, by actor: Actor, now: Timestamp) throws {
        try EventLog.record(
            self, number: number, kind: .storeRestored, run: nil, actor: actor, detail: detail, now: now)
    }

    package func skipNumbers(of gap: RestoreGap) throws { try GivenNumbers.skip(gap, self) }

    package func eventFaults() throws -> Verification.Check { try EventChain.faults(self) }

    package func leaseCheck() throws -> LeaseCheck { try LeaseCheck(self) }

    package func recordedBudgets() -> RecordedBudgets? { nil }

    package func caps(of keys: Set<CapKey>) throws -> CapUsage {
        var usage = CapUsage()
        try CapLedger(self).look(keys, into: &usage)
        return usage
    }

    private static func value(_ value: any SQLValue) -> any PostgresValue {
        switch value.argument {
        case .integer(let value): value
        case .real(let value): value
        case .bool(let value): value
        case .text(let value): value
        case .bytes(let value): value
        case .texts(let values): values
        case .integers(let values): values
        }
    }
}

extension PostgresDatabase {
    package var goesByCallersClock: Bool { pool.time == .caller }

    package func snapshot<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await read(cost, body)
    }

    package func transaction<Value: Sendable>(
        _ promise: WritePromise, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        switch promise {
        case .quick, .quickOfSender: try await write(.quick, body)
        case .durable, .durableOfSender, .durableOnServer: try await write(.durable, body)
        }
    }
}
