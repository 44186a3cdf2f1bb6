import Foundation
import GRDB
import GRDBSQLite
package import Model
import RelationalStore
package import Store
import Synchronization

/// The durable truth: one SQLite file in WAL mode, with one writing connection and several reading ones.
///
/// Every statement of the product stands below this type. Methods may be called from any task; writes queue behind
/// each other. A write that has begun is finished even when its task is cancelled, so that what was sent is
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
package final class SQLiteFileStore: RelationalStore {
    private let connections: Connections
    package let path: String
    package let namespace: (high: UInt64, low: UInt64)
    private let place: StorePlace
    /// What others could read of the files when they were opened, in words; nil: nothing.
    package let exposure: String?
    package let departed: StoreMove?
    package let restored: RestoredStore?
    let isAlive: OwnerLiveness.IsAlive
    let importCache = ImportCache()
    let freezeConnections: OwnReaders
    package let freezeTurns = ReadTurns(
        atOnceMax: StoreLimits.freezesMax, lineMax: StoreLimits.freezesWaitingMax)
    private let expensiveReaders: OwnReaders

    private enum Connections {
        case writing(DatabasePool)
        case reading(StoreReading)
    }

    /// Opens the file. Its folder must exist. A file that is no store, or one written by a newer version, is refused
    /// unchanged; one of an older version is copied first, beside itself, and brought up to date, unless it is opened for
    /// ``StoreAccess/reading``, which leaves everything as it is. Otherwise its files become readable by their owner only.
    ///
    /// - Parameters:
    ///   - isAlive: who may be alive; asked inside of transactions, so it takes no time. All, unless it is said.
    ///   - livingSender: a process that sends from the store, shown to a person; asked before a migration only.
    ///   - now: the time at which a restored backup becomes a store.
    ///   - tell: told, in words, before anything that may take minutes.
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
                let reading = try StoreReading(path: path)
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
                // Before SQLite opens the file: a restore may replace it while this waits for a lock.
                place = StorePlace(path: path, file: FilePlace(path))
                let pool = try DatabasePool(path: path, configuration: StoreConnection.configuration(readOnly: false))
                if try pool.read(Schema.isOlder), let sender = livingSender() {
                    throw StoreError.migrating(path, under: sender)
                }
                try Schema.migrate(pool, path: path)
                try place.require()
                if !access.isForMove { try pool.read { try MoveMarks.requireUsable($0, isReading: false) } }
                departed = try pool.read(MoveMarks.departure)
                try Self.makePutOffIndexes(pool, tell)
                restored = try access == .arriving ? nil : Self.endBackup(pool, now)
                connections = .writing(pool)
                namespace = try pool.read(Schema.namespace)
                try place.require()
            }
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    /// A copy that is opened to be written to is the store from now on.
    private static func endBackup(_ pool: DatabasePool, _ now: () -> Timestamp) throws -> RestoredStore? {
        guard try pool.read(BackupMarks.mark) != nil else { return nil }
        let moment = now()
        return try pool.write { try BackupMarks.end($0, now: moment) }
    }

    /// SQLite keeps its log beside the file that a link leads to.
    static func behindLink(_ path: String) -> String {
        guard (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil else { return path }
        return URL(fileURLWithPath: path).resolvingSymlinksInPath().path(percentEncoded: false)
    }

    package func requireInPlace() throws { try place.require() }

    /// Its writing connection cannot write where the store was opened for reading.
    var pool: DatabasePool {
        switch connections {
        case .writing(let pool): pool
        case .reading(let reading): reading.pool
        }
    }

    /// One read snapshot of unknown cost: it is expensive.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await read(.expensive, body)
    }

    /// One read snapshot on a reading connection; cancellable. An expensive one has connections of its own, and keeps
    /// to the caller's ``ReadAllowance``.
    func read<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        switch (connections, cost) {
        case (.writing(let pool), .short):
            do { return try await pool.read(body) } catch { throw StoreError.translated(error, path: path) }
        case (.writing, .expensive):
            return try await ReadAllowance.spend { [expensiveReaders] in try await expensiveReaders.read(body) }
        // A command that only reads: nothing else waits for its connections.
        case (.reading(let reading), _):
            do { return try await reading.read(body) } catch { throw StoreError.translated(error, path: path) }
        }
    }

    /// One transaction on the writing connection, not cancellable once queued.
    func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await write(importing: false, patience: .ofCommands, body)
    }

    /// The same for whoever sends: it asks again by itself, so that it can do something else in between.
    func writeSending<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(importing: false, patience: .ofSenders, body)
    }

    /// As ``write(_:)``, for one of the many transactions of an import: with the larger cache that lasts until the first
    /// write that is none.
    func writeImporting<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await write(importing: true, patience: .ofCommands, body)
    }

    /// The same for the parts of a move, which alone may write to a store that is not to be used.
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

    /// As ``write(_:)``, and on disk when it returns. SQLite takes `synchronous` only outside a transaction.
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

    /// One transaction from within a read, which the thread waits for.
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
            // A process that opened the store before it was moved writes nothing more, either.
            if !isOfMove { try MoveMarks.requireUsable(db, isReading: false) }
            value = try body(db)
            // A restore replaces the file only while no transaction is open: what is in place here is so at the commit.
            try place.require()
            return .commit
        }
        guard let value else { throw DatabaseError(resultCode: .SQLITE_ABORT, message: "the transaction has no value") }
        return value
    }
}

/// The file that a store was opened as, whatever its name is later.
private struct StorePlace: Sendable {
    let path: String
    /// `nil` for a store that is opened for reading.
    let file: FilePlace?

    func require() throws {
        guard let file, FilePlace(path) != file else { return }
        throw StoreError.displaced(path: path)
    }
}

/// Which file a path leads to.
private struct FilePlace: Hashable {
    private let device: UInt64
    private let number: UInt64

    /// `nil` if there is none.
    init?(_ path: String) {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        (device, number) = (UInt64(facts.st_dev), UInt64(facts.st_ino))
    }
}

/// How long a write waits while another process holds the store's write lock.
enum Patience: Int32 {
    case ofCommands = 15_000
    case ofSenders = 1_000

    /// Used on the writing connection's queue only, before a transaction.
    func set(on db: Database) { sqlite3_busy_timeout(db.sqliteConnection, rawValue) }
}

/// The page cache of the writing connection: an import writes all over the indexes and needs a larger one than whoever
/// sends, who goes through the devices in order. Shrinking it gives the memory back at once.
///
/// Used on the writing connection's queue only.
final class ImportCache: Sendable {
    private let isLarge = Atomic(false)

    func set(_ large: Bool, _ db: Database) throws {
        guard isLarge.load(ordering: .relaxed) != large else { return }
        let cacheKiB = large ? StoreLimits.importCacheKiB : StoreLimits.writerCacheKiB
        try db.execute(sql: "PRAGMA cache_size = -\(cacheKiB)")
        isLarge.store(large, ordering: .relaxed)
    }
}
