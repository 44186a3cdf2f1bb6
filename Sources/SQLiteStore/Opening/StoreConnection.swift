import Foundation
import GRDB
import GRDBSQLite
import Store
import Synchronization

/// How connections to the store are set up.
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
        // The connections keep their configuration, and with it the keeper.
        let keeper = LogKeeper(log)
        configuration.prepareDatabase { db in
            let cacheKiB =
                db.configuration.readonly ? StoreLimits.readerCacheKiB : StoreLimits.writerCacheKiB
            try db.execute(sql: "PRAGMA cache_size = -\(cacheKiB)")
            guard !db.configuration.readonly else { return }
            keeper.attach(to: db)
            try db.execute(sql: "PRAGMA journal_size_limit = \(StoreLimits.walKeptBytes)")
        }
        return configuration
    }
}

/// Connections for reads of one kind alone, open for as long as one is under way.
///
/// A freeze keeps its connection until a whole audience is written down, and a plan keeps its own until it has read all
/// devices. On the connections of short reads they would leave none for the sender, for a stop or for a health check.
/// They are closed in between: SQLite takes its log into the file when the last connection of all goes, if that one may
/// write.
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

    /// One snapshot; cancellable. Beyond the number of readers it waits until another read is over.
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
            // One that cannot be closed is when nobody has it any more.
            try? opened.pool?.close()
            opened.pool = nil
        }
    }
}

/// Keeps the write-ahead log small, also under readers that never leave a gap.
///
/// SQLite's own rule copies the log into the file every so often, but starts it again from the top only when nobody happens to
/// read from it: with readers that overlap, it grows for ever. So beyond a size the writer waits, shortly, for those that
/// read at that moment; who comes after them finds everything in the file and leaves the log alone. A reader that stays
/// longer costs the wait again only after the log has grown by as much once more.
final class LogKeeper: Sendable {
    private struct State {
        /// Pages at which the log is next started again.
        var restartAt: Int32
        var restarts = 0
    }

    /// How often a commit waited to start the log again.
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
                // A checkpoint that could not be made is no fault of the commit.
                return SQLITE_OK
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// Runs on the connection's thread, after its commit.
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
    /// Copied into the file from here on: see ``StoreLimits/walAutocheckpointPages``.
    var checkpointPages = Int32(StoreLimits.walAutocheckpointPages)
    /// Started again from the top from here on: what ``StoreLimits/walKeptBytes`` leaves of it.
    var restartPages = Int32(StoreLimits.walKeptBytes / 4096)
    /// How long a commit may wait for those who read at that moment.
    var restartWaitMs: Int32 = 250
}

/// The numbers the store works within, each with its reason.
package enum StoreLimits {
    /// Page cache of the one writing connection: whoever sends goes through the devices in order and needs no more.
    static let writerCacheKiB = 8_192
    /// The same while an import is under way, which writes all over the indexes: holds their inner pages for some millions of
    /// devices; twice as much is no faster.
    static let importCacheKiB = 32_768
    /// Page cache of a reading connection: readers mostly scan once.
    static let readerCacheKiB = 8_192
    /// Connections for short reads: pages, the API, the sender, and one to spare.
    static let readersMax = 4
    /// Connections for expensive reads. Above ``ReadTurns/atOnceMax``, so that the daemon's own never wait for outside
    /// callers, and so that a campaign that takes long to count leaves some to the others.
    static let expensiveReadersMax = ReadTurns.atOnceMax + 4
    /// Audiences written down at the same time. Above the number of runs that are slow to select at the same time, so
    /// that these hold no other run: reading goes on side by side, and each batch waits for the one writing connection.
    /// More of them wait for their turn, see ``FreezeDelayed``.
    static let freezesMax = 32
    /// Above the number of runs that start in the same moment: a full line puts a run off at once.
    static let freezesWaitingMax = 1_000
    /// The log goes back into the file after 16 MiB. SQLite's default of 4 MiB copies hot index pages four times
    /// as often during an import; much more makes each reader search a longer log.
    static let walAutocheckpointPages = 4_096
    /// A log that grew behind a long read is cut back to this size at its next reset.
    static let walKeptBytes = 67_108_864
    /// Longer than any transaction of ours takes: another process may be importing.
    package static let busyTimeoutSeconds = 15.0

    /// The first batch of a freeze is small, so that the first push leaves early.
    static let freezeFirstBatchRows = 2_000
    static let freezeBatchRows = 20_000
    static let exportBatchRows = 5_000
    /// Devices deleted per transaction: each touches pages of several indexes.
    static let pruneBatchRows = 2_000
    /// Outcomes deleted per transaction: they lie side by side.
    static let outcomesPruneBatchRows = 50_000
    /// Pages given back to the disk per transaction.
    static let shrinkBatchPages = 10_000
    /// How long an `audience_sql` may take.
    package static let audienceSQLTime = AudienceSQLText.timeLimit
    static let matchingDevicesMax = 20
}
