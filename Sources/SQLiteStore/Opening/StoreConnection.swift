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

/// The file of a store before anything is written to it: what it is, and whether this version may open it.
struct StoreFile {
    /// `application_id` of the file header, "FNFR": other programs' databases are left alone.
    static let applicationID = 0x464E_4652

    let path: String

    /// Looks at the file through a connection that cannot write. Throws for anything that is not an empty file, no
    /// file, or a store of a known version.
    func inspect(readOnly: Bool) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw StoreError.noFolder(path: path)
        }
        guard FileManager.default.fileExists(atPath: path) else {
            if readOnly { throw StoreError.cannotOpen(path: path, reason: "there is no such file") }
            return
        }
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.read { try checkIdentity($0, readOnly: readOnly) }
    }

    /// The store's files are for its owner's eyes only, whatever the umask: makes an empty one so where there is none, since
    /// SQLite gives the log and the shared memory the mode of the file they belong to, and closes those that are open to
    /// others. Returns what others could read until now, and whether they still can; nil: nothing.
    ///
    /// Never by a descriptor: to close one would drop the locks that another connection of this process holds.
    func keepPrivate() throws -> String? {
        try Self.makeEmpty(path)
        var found: [String] = []
        for name in ["", "-wal", "-shm"].map({ path + $0 }) {
            var facts = stat()
            guard stat(name, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_mode & 0o077 != 0 else {
                continue
            }
            let mode = String(facts.st_mode & 0o777, radix: 8)
            let isClosed = chmod(name, 0o600) == 0
            found.append(
                "\(name) was open to others (mode \(mode))" + (isClosed ? "; it is 600 now" : ", and cannot be closed"))
        }
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    /// A file that is there stays as it is.
    static func makeEmpty(_ path: String) throws {
        if mknod(path, S_IFREG | 0o600, 0) == 0 {
            // The umask may have taken away what the owner needs.
            chmod(path, 0o600)
        } else if errno != EEXIST {
            throw StoreError.cannotOpen(path: path, reason: String(cString: strerror(errno)))
        }
    }

    private func checkIdentity(_ db: Database, readOnly: Bool) throws {
        let application = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        guard application == Self.applicationID || tables == 0 else { throw StoreError.notAStore(path: path) }
        guard version <= Schema.version else {
            throw StoreError.newerVersion(path: path, found: version, known: Schema.version)
        }
        guard readOnly else { return }
        // Nothing can be made of it without writing.
        guard application == Self.applicationID else { throw StoreError.notAStore(path: path) }
        guard version == Schema.version else {
            throw StoreError.olderVersion(path: path, found: version, known: Schema.version)
        }
    }
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
    /// Four readers: the freeze, a page of the dashboard, a report, and one to spare.
    static let readersMax = 4
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
    package static let audienceSQLTime: Duration = .seconds(10)
    /// Dynamic segments within dynamic segments.
    static let segmentDepthMax = 10
    /// SQLite takes 32766 parameters at most.
    static let audienceParametersMax = 30_000
    /// Parts of an audience with its segments written out.
    static let audiencePartsMax = 50_000
    static let matchingDevicesMax = 20
}
