import Foundation
import GRDB
import Store

/// The durable truth: one SQLite file in WAL mode, with one writing connection and several reading ones.
///
/// Every statement of the product stands below this type. Methods may be called from any task; writes queue behind
/// each other. A write that has begun is carried through even when its task is cancelled, so that what was sent is
/// always recorded; reads and ``freeze(_:now:onBatch:)`` stop at cancellation with `CancellationError`.
///
/// Power failures: `synchronous` is NORMAL, so a commit survives the end of the process at once, and the end of the
/// power once the log was synced after it. What the power takes is always the latest commits, whole ones and none before
/// them. Three wait for the disk (FULL), and with them everything committed earlier is safe, since the log is one file:
/// ``lease(_:)``, because a push must not leave before the record that it may have left is safe; ``release`` and
/// ``change``, because somebody is told that the run is finished, paused or cancelled. All that can be lost besides is
/// done again or was never promised: an outcome (its delivery is then doubtful, as after a crash, and its silent budget
/// stays reserved), a batch of the freeze (it is frozen again), a heartbeat, the last seconds of an import.
///
/// Errors are ``StoreError``.
package final class SQLiteFileStore: AllRoles {
    let pool: DatabasePool
    package let path: String
    /// A random UUID made once per store; the name space of the `apns-id`s of its deliveries.
    package let namespace: (high: UInt64, low: UInt64)
    let hasEnded: HasEnded

    /// Whether the process behind an owner's name has ended for certain, so that nobody needs to wait until its
    /// heartbeat is stale. Where it cannot be told: false.
    package typealias HasEnded = @Sendable (_ owner: String) -> Bool

    /// Opens the file, creating and migrating it unless `readOnly`. Its folder must exist. A file that is no store,
    /// or one written by a newer version, is refused unchanged; one of an older version is copied first, beside itself.
    package init(
        path: String, readOnly: Bool = false, hasEnded: @escaping HasEnded = { _ in false }
    ) throws {
        self.path = path
        self.hasEnded = hasEnded
        do {
            try StoreFile(path: path).inspect(readOnly: readOnly)
            pool = try DatabasePool(
                path: path, configuration: StoreConnection.configuration(readOnly: readOnly))
            if !readOnly { try Schema.migrate(pool, path: path) }
            namespace = try pool.read(Schema.namespace)
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    /// Waits for what runs and closes the file. Calling a method afterwards is an error.
    package func close() throws {
        do { try pool.close() } catch { throw StoreError.translated(error, path: path) }
    }

    /// Problems SQLite finds in its own structure; empty is good. Reads the whole file.
    package func integrity() async throws -> [String] {
        try await read { db in
            let faults = try String.fetchAll(db, sql: "PRAGMA quick_check(20)").filter { $0 != "ok" }
            let orphans = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").prefix(20)
            return faults + orphans.map { "foreign key: \($0)" }
        }
    }

    /// One read snapshot on a reading connection; cancellable.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do { return try await pool.read(body) } catch { throw StoreError.translated(error, path: path) }
    }

    /// One transaction on the writing connection, not cancellable once queued.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let result = await withCheckedContinuation { continuation in
            pool.asyncWrite(body) { _, result in continuation.resume(returning: result) }
        }
        do { return try result.get() } catch { throw StoreError.translated(error, path: path) }
    }

    /// As ``write(_:)``, and on disk when it returns. SQLite takes `synchronous` only outside a transaction.
    func writeDurably<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                continuation.resume(returning: Result { try Self.durably(db, body) })
            }
        }
        do { return try result.get() } catch { throw StoreError.translated(error, path: path) }
    }

    private static func durably<Value>(_ db: Database, _ body: (Database) throws -> Value) throws -> Value {
        try db.execute(sql: "PRAGMA synchronous = FULL")
        let result = Result { try transaction(db, body) }
        try db.execute(sql: "PRAGMA synchronous = NORMAL")
        return try result.get()
    }

    private static func transaction<Value>(_ db: Database, _ body: (Database) throws -> Value) throws -> Value {
        var value: Value?
        try db.inTransaction(.immediate) {
            value = try body(db)
            return .commit
        }
        guard let value else { throw DatabaseError(resultCode: .SQLITE_ABORT, message: "the transaction has no value") }
        return value
    }
}
