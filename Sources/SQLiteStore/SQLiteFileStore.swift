import Foundation
import GRDB
import GRDBSQLite
package import Model
import RelationalStore
package import Store
import Synchronization

/// The store in one SQLite file in WAL mode, with one writing connection and several reading connections.
///
/// The SQL statements of the SQLite store are in this module and in `RelationalStore`. Methods may be called from any
/// task; writes are queued. A write that has begun is finished even if its task is cancelled, so that every send is
/// recorded. Reads and ``freeze(_:now:onBatch:)`` stop at cancellation with `CancellationError`.
///
/// With `synchronous` NORMAL, a commit survives a crash of the process immediately. It survives a power failure once
/// the log has been synced after it. A power failure loses only the latest commits, and never a part of one.
///
/// Durable writes wait for the disk (`synchronous` FULL). They also make every earlier commit safe, since the log is
/// one file. They include:
/// - ``lease(_:)``: a push must not be sent before its lease is on disk.
/// - ``release`` and ``change``: a caller is told that the run is finished, paused or cancelled.
///
/// A power failure can lose the other writes. They are repeated later, or their caller was promised nothing. They
/// include:
/// - an outcome; its delivery is then in doubt, as after a crash, and its silent budget stays reserved
/// - a batch of the freeze, which is frozen again
/// - a heartbeat
/// - the last seconds of an import
///
/// Errors are ``StoreError``.
package final class SQLiteFileStore: RelationalStore {
    private let connections: Connections
    package let path: String
    package let namespace: (high: UInt64, low: UInt64)
    private let place: StorePlace
    /// A description of the files that other accounts could access when the store was opened. `nil` if there was no
    /// such file.
    package let exposure: String?
    package let departed: StoreMove?
    package let restored: RestoredStore?
    let isAlive: OwnerLiveness.IsAlive
    let importCache = ImportCache()
    let freezeConnections: OwnReaders
    package let freezeQueue = ReadQueue(
        atOnceMax: StoreLimits.freezesMax, lineMax: StoreLimits.freezesWaitingMax)
    private let expensiveReaders: OwnReaders

    private enum Connections {
        case writing(DatabasePool)
        case reading(StoreReading)
    }

    /// Opens the file, whose folder must exist. Refuses a file that is no store, or that a newer version wrote, and
    /// leaves it unchanged. Copies a store of an older version to a file beside it, and then migrates the store.
    /// Makes the files readable by their owner only. With ``StoreAccess/reading``, nothing is changed.
    ///
    /// - Parameters:
    ///   - isAlive: whether an owner may be alive. It is called inside transactions, so it must not block. By
    ///     default, every owner may be alive.
    ///   - livingSender: returns a living sender of the store, which prevents a migration; called only before one.
    ///   - now: returns the time at which a restored backup becomes a store.
    ///   - tell: receives a message before anything that may take minutes.
    package init(
        path: String, access: StoreAccess = .making, isAlive: @escaping OwnerLiveness.IsAlive = { _ in true },
        livingSender: () -> String? = { nil }, now: () -> Timestamp = { Timestamp(Date()) },
        tell: (String) -> Void = { _ in }
    ) throws {
        let path = Self.behindLink(path)
        self.path = path
        self.isAlive = isAlive
        freezeConnections = OwnReaders(path: path, label: "freeze", readersMax: StoreLimits.freezesMax)
        expensiveReaders = OwnReaders(path: path, label: "expensive", readersMax: StoreLimits.expensiveReadersMax)
        do {
            let file = StoreFile(path: path)
            try file.requireFile(for: access)
            if access == .reading {
                let reading = try file.takingBackUnfinished { try StoreReading(path: path) }
                connections = .reading(reading)
                exposure = nil
                restored = nil
                try reading.pool.read { try MoveMarks.requireUsable($0, isReading: true) }
                departed = try reading.pool.read(MoveMarks.departure)
                namespace = try reading.pool.read(Schema.namespace)
                place = StorePlace(path: path, file: nil)
            } else {
                try file.inspect(for: access)
                exposure = try file.keepPrivate()
                // Read this before SQLite opens the file: a restore may replace the file while SQLite waits for a lock.
                place = StorePlace(path: path, file: FilePlace(path))
                let pool = try DatabasePool(path: path, configuration: StoreConnection.configuration(readOnly: false))
                if try pool.read(Schema.isOlder), let sender = livingSender() {
                    throw StoreError.migrating(path, under: sender)
                }
                try Schema.migrate(pool, path: path, tell: tell)
                try place.require()
                if !access.isForMove { try pool.read { try MoveMarks.requireUsable($0, isReading: false) } }
                departed = try pool.read(MoveMarks.departure)
                try Self.makeDeferredIndexes(pool, tell)
                restored = try access == .arriving ? nil : Self.endBackup(pool, now)
                connections = .writing(pool)
                namespace = try pool.read(Schema.namespace)
                try place.require()
            }
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    /// Turns a backup that is opened for writing into a store. Returns `nil` if the file is no backup.
    private static func endBackup(_ pool: DatabasePool, _ now: () -> Timestamp) throws -> RestoredStore? {
        guard try pool.read(BackupMarks.mark) != nil else { return nil }
        let moment = now()
        return try pool.write { try BackupMarks.end($0, now: moment) }
    }

    /// Resolves a symbolic link, because SQLite keeps its log beside the link's target.
    static func behindLink(_ path: String) -> String {
        guard (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil else { return path }
        return URL(fileURLWithPath: path).resolvingSymlinksInPath().path(percentEncoded: false)
    }

    package func requireInPlace() throws { try place.require() }

    /// The connection pool. Its writing connection cannot write if the store was opened for reading.
    var pool: DatabasePool {
        switch connections {
        case .writing(let pool): pool
        case .reading(let reading): reading.pool
        }
    }

    /// Reads one snapshot at `ReadCost.expensive` cost, because the cost is unknown.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await read(.expensive, body)
    }

    /// Reads one snapshot on a reading connection; cancellable. An expensive read uses separate connections and counts
    /// against the caller's ``ReadAllowance``.
    func read<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        switch (connections, cost) {
        case (.writing(let pool), .short):
            do { return try await pool.read(body) } catch { throw StoreError.translated(error, path: path) }
        case (.writing, .expensive):
            return try await ReadAllowance.spend { [expensiveReaders] in try await expensiveReaders.read(body) }
        // This command only reads: no other task waits for its connections.
        case (.reading(let reading), _):
            do { return try await reading.read(body) } catch { throw StoreError.translated(error, path: path) }
        }
    }

    /// Runs one transaction on the writing connection; not cancellable once queued.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await write(importing: false, patience: .ofCommands, body)
    }

    /// Runs one transaction of a sender, which waits only briefly for the lock. The sender retries, and can do other
    /// work in between.
    func writeSending<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(importing: false, patience: .ofSenders, body)
    }

    /// Runs one of the many transactions of an import, as ``write(_:)`` does. Its larger cache lasts until the first
    /// write that is not part of an import.
    func writeImporting<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(importing: true, patience: .ofCommands, body)
    }

    /// Runs one transaction of a move. Only a move may write to a store that has moved or is arriving.
    func writeOfMove<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(importing: true, patience: .ofCommands, isOfMove: true, body)
    }

    private func write<Value: Sendable>(
        importing: Bool, patience: Patience, isOfMove: Bool = false,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        let (importCache, place) = (importCache, place)
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                continuation.resume(
                    returning: Result {
                        patience.set(on: db)
                        try importCache.set(importing, db)
                        return try Self.transaction(db, in: place, isOfMove: isOfMove, body)
                    })
            }
        }
        do { return try result.get() } catch { throw StoreError.translated(error, path: path) }
    }

    /// Runs one transaction as ``write(_:)`` does. It is on disk when this returns. SQLite accepts `synchronous` only
    /// outside a transaction.
    func writeDurably<Value: Sendable>(
        patience: Patience = .ofCommands, isOfMove: Bool = false,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        let (importCache, place) = (importCache, place)
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            pool.asyncWriteWithoutTransaction { db in
                continuation.resume(
                    returning: Result {
                        patience.set(on: db)
                        try importCache.set(false, db)
                        return try Self.durably(db, in: place, isOfMove: isOfMove, body)
                    })
            }
        }
        do { return try result.get() } catch { throw StoreError.translated(error, path: path) }
    }

    /// Runs one transaction from within a read; the calling thread waits for it.
    func transaction<Value>(_ patience: Patience, _ body: (Database) throws -> Value) throws -> Value {
        try pool.writeWithoutTransaction { db in
            patience.set(on: db)
            return try Self.transaction(db, in: place, body)
        }
    }

    private static func durably<Value>(
        _ db: Database, in place: StorePlace, isOfMove: Bool, _ body: (Database) throws -> Value
    ) throws -> Value {
        try db.execute(sql: "PRAGMA synchronous = FULL")
        let result = Result { try transaction(db, in: place, isOfMove: isOfMove, body) }
        try db.execute(sql: "PRAGMA synchronous = NORMAL")
        return try result.get()
    }

    private static func transaction<Value>(
        _ db: Database, in place: StorePlace, isOfMove: Bool = false, _ body: (Database) throws -> Value
    ) throws -> Value {
        var value: Value?
        try db.inTransaction(.immediate) {
            try Schema.requireKnown(db)
            // A process that opened the store before it was moved must not write any more.
            if !isOfMove { try MoveMarks.requireUsable(db, isReading: false) }
            value = try body(db)
            // A restore replaces the file only while no transaction is open, so this check still holds at the commit.
            try place.require()
            return .commit
        }
        guard let value else { throw DatabaseError(resultCode: .SQLITE_ABORT, message: "the transaction has no value") }
        return value
    }
}

/// The file that was opened as the store. Another file may have its path later.
private struct StorePlace: Sendable {
    let path: String
    /// `nil` for a store that is opened for reading.
    let file: FilePlace?

    func require() throws {
        guard let file, FilePlace(path) != file else { return }
        throw StoreError.displaced(path: path)
    }
}

/// The identity of the file that a path leads to.
private struct FilePlace: Hashable {
    private let device: UInt64
    private let number: UInt64

    /// Returns `nil` if there is no file.
    init?(_ path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        (device, number) = (UInt64(facts.st_dev), UInt64(facts.st_ino))
    }
}

/// The number of milliseconds that a write waits while another process holds the store's write lock.
enum Patience: Int32 {
    case ofCommands = 15_000
    case ofSenders = 1_000

    /// Sets the timeout. Call it only on the writing connection's queue, before a transaction.
    func set(on db: Database) { sqlite3_busy_timeout(db.sqliteConnection, rawValue) }
}

/// The page cache of the writing connection. An import writes to all pages of the indexes and needs a larger cache than
/// a sender, which reads the devices in order. Shrinking the cache releases the memory immediately.
///
/// Used only on the writing connection's queue.
final class ImportCache: Sendable {
    private let isLarge = Atomic(false)

    func set(_ large: Bool, _ db: Database) throws {
        guard isLarge.load(ordering: .relaxed) != large else { return }
        let cacheKiB = large ? StoreLimits.importCacheKiB : StoreLimits.writerCacheKiB
        try db.execute(sql: "PRAGMA cache_size = -\(cacheKiB)")
        isLarge.store(large, ordering: .relaxed)
    }
}
