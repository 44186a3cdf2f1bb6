import Foundation
package import GRDB
package import Model
// Who imports the store has its methods, most of which are those of every relational store.
@_exported public import RelationalStore
package import Store

/// A transaction of SQLite for the statements that both engines share. Statements are prepared once for each connection.
extension Database: SQLSession {
    package static var dialect: SQLDialect { .sqlite }

    package func execute(_ statement: SQLStatement, values: [any SQLValue]) throws -> Int {
        let prepared = try prepare(statement)
        try prepared.execute(arguments: Self.arguments(values))
        return changesCount
    }

    package func all<Value>(
        _ statement: SQLStatement, values: [any SQLValue], read: (SQLiteFields) throws -> Value
    ) throws -> [Value] {
        let rows = try Row.fetchCursor(try prepare(statement), arguments: Self.arguments(values))
        var found: [Value] = []
        while let row = try rows.next() { found.append(try read(SQLiteFields(row))) }
        return found
    }

    package func execute(_ statement: SQLStatement, each rows: [[any SQLValue]]) throws {
        for values in rows { _ = try execute(statement, values: values) }
    }

    package var goesByCallersClock: Bool { true }

    /// One transaction writes at a time.
    package func lock(table: String) {}

    package func record(
        _ kind: EventKind, run: Int64?, by actor: Actor, _ detail: String, files: [String: String], now: Timestamp
    ) throws -> Int64 {
        try EventLog.record(self, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
    }

    package func moment(_ now: Timestamp) -> Timestamp { now }

    package func makeDeliveries(of run: Int64) {}

    package func ended(run: Int64) {}

    package func lockWork(of run: Int64) {}

    package func senders(of run: Int64) -> [String] { [] }

    package func isSender(_ owner: String, of run: Int64) throws -> Bool { try RunOwner.locked(self, run).owner == owner }

    package func join(_ sender: String, to run: Int64, _ isAlive: OwnerLiveness.IsAlive) {}

    package func leave(_ run: Int64, _ owner: String?) {}

    package func closeLeases(of run: Int64, now: Timestamp) throws { try LeaseRecovery(self, run, now: now).closeAll() }

    package func leasedDevices(of run: Int64) throws -> [Int64] {
        try LeaseRecovery(self, run, now: Timestamp(milliseconds: 0)).left().flatMap { $0.deliveries.map(\.device) }
    }

    private func prepare(_ statement: SQLStatement) throws -> Statement {
        statement.isKept ? try cachedStatement(sql: statement.text) : try makeStatement(sql: statement.text)
    }

    /// `$1` is a name for SQLite, whatever the order in which they stand in the text.
    private static func arguments(_ values: [any SQLValue]) -> StatementArguments {
        var arguments: [String: DatabaseValue] = [:]
        for (index, value) in values.enumerated() { arguments["\(index + 1)"] = databaseValue(value.argument) }
        return StatementArguments(arguments)
    }

    private static func databaseValue(_ argument: SQLArgument) -> DatabaseValue {
        switch argument {
        case .integer(let value): value.databaseValue
        case .real(let value): value.databaseValue
        case .bool(let value): value.databaseValue
        case .text(let value): value.databaseValue
        case .bytes(let value): value.map { Data($0) }.databaseValue
        case .texts(let values): StoredJSON.array(values).databaseValue
        case .integers(let values): "[\(values.map(String.init).joined(separator: ","))]".databaseValue
        }
    }
}

/// A row while its statement stands on it. A value that is not what was asked for is an error, not the end of the process.
package struct SQLiteFields: SQLFields {
    private let row: Row

    init(_ row: Row) { self.row = row }

    package func int64(_ column: Int) throws -> Int64 { try row.decode(Int64.self, atIndex: column) }
    package func int64OrNil(_ column: Int) throws -> Int64? { try row.decode(Int64?.self, atIndex: column) }
    package func int(_ column: Int) throws -> Int { try row.decode(Int.self, atIndex: column) }
    package func intOrNil(_ column: Int) throws -> Int? { try row.decode(Int?.self, atIndex: column) }
    package func bool(_ column: Int) throws -> Bool { try row.decode(Bool.self, atIndex: column) }
    package func boolOrNil(_ column: Int) throws -> Bool? { try row.decode(Bool?.self, atIndex: column) }
    package func double(_ column: Int) throws -> Double { try row.decode(Double.self, atIndex: column) }
    package func text(_ column: Int) throws -> String { try row.decode(String.self, atIndex: column) }
    package func textOrNil(_ column: Int) throws -> String? { try row.decode(String?.self, atIndex: column) }
    package func bytes(_ column: Int) throws -> [UInt8] { Array(try row.decode(Data.self, atIndex: column)) }
    package func bytesOrNil(_ column: Int) throws -> [UInt8]? {
        try row.decode(Data?.self, atIndex: column).map { Array($0) }
    }
    package func timestamp(_ column: Int) throws -> Timestamp { Timestamp(milliseconds: try int64(column)) }
    package func timestampOrNil(_ column: Int) throws -> Timestamp? {
        try int64OrNil(column).map(Timestamp.init(milliseconds:))
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
        case .quick: try await write(body)
        case .quickOfSender: try await writeSending(body)
        case .durable: try await writeDurably(body)
        case .durableOfSender: try await writeDurably(patience: .ofSenders, body)
        }
    }

    package func beatBeforeClaim(_ sender: String) {}

    package func requireNotLost(_ sender: String, _ db: Database) {}

    package func living(_ db: Database, at run: Int64) -> OwnerLiveness.IsAlive { isAlive }

    package func settleBeforeRelease(now: Timestamp) {}

    package func released(_ run: Int64, _ state: RunState) {}

    package var webhooksAhead: Duration {
        get { .zero }
        set {}
    }
}
