import Foundation
import GRDB
import GRDBSQLite
import Store
import Synchronization

/// The configuration of connections to the store.
enum StoreConnection {
    static func configuration(
        readOnly: Bool, log: LogLimits = LogLimits()
    ) -> Configuration {
        var configuration = Configuration()
        configuration.readonly = readOnly
        configuration.label = "store"
        configuration.foreignKeysEnabled = true
        configuration.maximumReaderCount = StoreLimits.readersMax
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        // Reopening a reader would lose its cache and its compiled statements.
        configuration.persistentReadOnlyConnections = true
        // The connections retain their configuration, and with it the keeper.
        let keeper = LogKeeper(log)
        configuration.prepareDatabase { db in
            let cacheKiB =
                db.configuration.readonly ? StoreLimits.readerCacheKiB : StoreLimits.writerCacheKiB
            try db.execute(sql: "PRAGMA cache_size = -\(cacheKiB)")
            guard !db.configuration.readonly else { return }
            keeper.attach(to: db)
            try ByteAt.add(to: db)
            try db.execute(sql: "PRAGMA journal_size_limit = \(StoreLimits.walKeptBytes)")
        }
        return configuration
    }
}

/// The connections of one kind of read. They are open only while such a read is in progress.
///
/// A freeze keeps its connection until a whole audience is frozen, and a plan keeps one until it has read all devices.
/// If they used the connections of short reads, the sender, a stop and a health check would have none.
///
/// They are closed between such reads, because SQLite copies its log into the file when the last connection closes
/// only if that connection may write.
final class OwnReaders: Sendable {
    private struct Opened {
        var pool: DatabasePool?
        var reads = 0
    }

    private let path: String
    private let label: String
    private let readersMax: Int
    private let opened = Mutex(Opened())

    init(path: String, label: String, readersMax: Int) {
        self.path = path
        self.label = label
        self.readersMax = readersMax
    }

    /// Reads one snapshot; cancellable. Waits for another read to finish if all connections are in use.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do {
            let pool = try begin()
            defer { end() }
            let cancellation = ReadCancellation()
            return try await withTaskCancellationHandler {
                try await pool.read { db in try cancellation.watching(db) { try body(db) } }
            } onCancel: {
                cancellation.cancel()
            }
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    private func begin() throws -> DatabasePool {
        try opened.withLock { opened in
            let pool = try opened.pool ?? open()
            opened.pool = pool
            opened.reads += 1
            return pool
        }
    }

    private func open() throws -> DatabasePool {
        var configuration = StoreConnection.configuration(readOnly: true)
        configuration.label = label
        configuration.maximumReaderCount = readersMax
        return try DatabasePool(path: path, configuration: configuration)
    }

    private func end() {
        opened.withLock { opened in
            opened.reads -= 1
            guard opened.reads == 0 else { return }
            // If the pool cannot be closed now, it closes when its last reference is released.
            try? opened.pool?.close()
            opened.pool = nil
        }
    }
}

/// Keeps the write-ahead log small, even if readers overlap all the time.
///
/// By default, SQLite copies the log into the file regularly, but restarts it from the top only if no reader is
/// using it. With overlapping readers, the log would grow without limit. Beyond a size, the writer therefore waits
/// briefly for the current readers. Later readers find everything in the file, and do not use the log. A reader that
/// stays longer causes another wait only after the log has grown by the same size again.
final class LogKeeper: Sendable {
    private struct State {
        /// The size of the log, in pages, at which it is next restarted.
        var restartAt: Int32
        var restarts = 0
    }

    /// The number of times that a commit waited to restart the log.
    var restarts: Int { state.withLock { $0.restarts } }

    private let limits: LogLimits
    private let state: Mutex<State>

    init(_ limits: LogLimits) {
        self.limits = limits
        state = Mutex(State(restartAt: limits.restartPages))
    }

    /// Replaces `wal_autocheckpoint` on the writing connection, which the keeper must outlive.
    func attach(to db: Database) {
        sqlite3_wal_hook(
            db.sqliteConnection,
            { context, connection, schema, pages in
                guard let context else { return SQLITE_OK }
                let keeper = Unmanaged<LogKeeper>.fromOpaque(context).takeUnretainedValue()
                keeper.committed(pages: pages, connection, schema)
                // A failed checkpoint must not fail the commit.
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// Checkpoints the log. It runs on the connection's thread, after its commit.
    private func committed(pages: Int32, _ connection: OpaquePointer?, _ schema: UnsafePointer<CChar>?) {
        guard pages >= limits.checkpointPages else { return }
        let mustRestart = state.withLock { state in
            if pages < limits.restartPages { state.restartAt = limits.restartPages }
            guard pages >= state.restartAt else { return false }
            state.restartAt = pages + limits.restartPages
            state.restarts += 1
            return true
        }
        guard mustRestart else {
            sqlite3_wal_checkpoint_v2(connection, schema, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
            return
        }
        sqlite3_busy_timeout(connection, limits.restartWaitMs)
        sqlite3_wal_checkpoint_v2(connection, schema, SQLITE_CHECKPOINT_RESTART, nil, nil)
        sqlite3_busy_timeout(connection, Int32(StoreLimits.busyTimeoutSeconds * 1000))
    }
}

/// Sizes of the log, in pages of 4 KiB.
struct LogLimits: Hashable {
    /// The size from which the log is copied into the file; see ``StoreLimits/walAutocheckpointPages``.
    var checkpointPages = Int32(StoreLimits.walAutocheckpointPages)
    /// The size from which the log is restarted from the top. It is that of ``StoreLimits/walKeptBytes``.
    var restartPages = Int32(StoreLimits.walKeptBytes / 4096)
    /// The number of milliseconds that a commit may wait for the current readers.
    var restartWaitMs: Int32 = 250
}

/// The limits of the store, each with its reason.
package enum StoreLimits {
    /// The page cache of the one writing connection. A sender reads the devices in order and needs no more.
    static let writerCacheKiB = 8_192
    /// The page cache of the writing connection during an import, which writes to all pages of the indexes. It holds
    /// their inner pages for some millions of devices; twice as much is no faster.
    static let importCacheKiB = 32_768
    /// The page cache of a reading connection. Readers mostly scan rows once, so a larger cache would not help.
    static let readerCacheKiB = 8_192
    /// The number of connections for short reads: pages, the API, the sender, and one to spare.
    static let readersMax = 4
    /// The number of connections for expensive reads. It is above ``ReadQueue/atOnceMax``, so that the daemon's own
    /// reads never wait for outside callers. A campaign whose count takes long also leaves some connections to other
    /// campaigns.
    static let expensiveReadersMax = ReadQueue.atOnceMax + 4
    /// The number of audiences frozen at the same time. It is above the expected number of simultaneous runs with
    /// slow audience queries, so that these delay no other run. Freezes read in parallel, and each batch waits for
    /// the one writing connection. Further freezes wait for their turn; see ``FreezeDelayed``.
    static let freezesMax = 32
    /// The number of freezes that may wait. It is above the expected number of runs that start at the same moment,
    /// because a full queue puts a run off immediately.
    static let freezesWaitingMax = 1_000
    /// The size of the log, in pages, from which it is copied into the file: 16 MiB. SQLite's default of 4 MiB
    /// copies hot index pages four times as often during an import. With a much larger size, each reader searches a
    /// longer log.
    static let walAutocheckpointPages = 4_096
    /// The size to which a log that grew during a long read is truncated at its next reset.
    static let walKeptBytes = 67_108_864
    /// The longest wait for another process's lock. It is longer than any transaction of Fanfare, because that
    /// process may be importing.
    package static let busyTimeoutSeconds = 15.0

    /// The number of devices in the first batch of a freeze. It is small, so that the first push is sent early.
    static let freezeFirstBatchRows = 2_000
    static let freezeBatchRows = 20_000
    /// The number of devices deleted per transaction. It is small, because each deletion changes pages of several
    /// indexes.
    static let pruneBatchRows = 2_000
    /// The number of outcomes deleted per transaction. It is large, because outcomes are stored side by side.
    static let outcomesPruneBatchRows = 50_000
    /// The number of pages released to the disk per transaction.
    static let shrinkBatchPages = 10_000
    /// The time limit of an `audience_sql`.
    package static let audienceSQLTime = AudienceSQLText.timeLimit
}
