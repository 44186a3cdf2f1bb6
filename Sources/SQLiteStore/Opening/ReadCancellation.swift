import GRDB
import GRDBSQLite
import Synchronization

/// Ends a read whose task was cancelled, whatever the read is doing.
///
/// An interrupt alone may be lost. SQLite clears it when a statement begins, and the statement then runs to its end.
final class ReadCancellation: Sendable {
    /// The number of SQLite virtual machine steps between two checks. They take less than a millisecond.
    private static let stepsPerLook: Int32 = 20_000

    private let isCancelled = Atomic(false)

    func cancel() { isCancelled.store(true, ordering: .relaxed) }

    func watching<Value>(_ db: Database, _ body: () throws -> Value) rethrows -> Value {
        sqlite3_progress_handler(
            db.sqliteConnection, Self.stepsPerLook,
            { address in
                guard let address else { return 1 }
                let own = Unmanaged<ReadCancellation>.fromOpaque(address).takeUnretainedValue()
                return own.isCancelled.load(ordering: .relaxed) ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        defer { sqlite3_progress_handler(db.sqliteConnection, 0, nil, nil) }
        return try body()
    }
}
