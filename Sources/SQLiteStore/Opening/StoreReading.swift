import Foundation
import GRDB
import GRDBSQLite
import Store
import Synchronization

/// The connections of a process that only reads.
///
/// While another process writes, these connections read through its log. If this process may not write the shared
/// memory, SQLite opens that memory for reading only, and waits for no lock.
///
/// If no process has the store open, there is no log. SQLite would create one to read, which needs a writable folder.
/// The file is therefore read as unchanging (`immutable`). After each read, this type checks that the file did not
/// change.
final class StoreReading: Sendable {
    private struct Opened {
        var pool: DatabasePool
        /// The state of the file when it was opened as `immutable`; `nil` if it is read through the log.
        var still: FileState?
    }

    private let path: String
    private let opened: Mutex<Opened>

    /// Throws unless the file is a store of this version.
    init(path: String) throws {
        self.path = path
        opened = Mutex(try Self.open(path))
        do {
            try pool.read { try StoreFile(path: path).checkIdentity($0, for: .reading) }
        } catch {
            // A checkpoint during the read may look like damage to SQLite.
            try requireStill(opened.withLock(\.still))
            throw error
        }
    }

    var pool: DatabasePool { opened.withLock(\.pool) }

    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let (pool, still) = try current()
        let result: Result<Value, any Error>
        do { result = .success(try await pool.read(body)) } catch { result = .failure(error) }
        try requireStill(still)
        return try result.get()
    }

    func close() throws { try pool.close() }

    /// Returns the connections to use now. Another process may have begun to write since the last read.
    private func current() throws -> (DatabasePool, FileState?) {
        try opened.withLock { opened in
            if let still = opened.still, FileState(path) != still { opened = try Self.open(path) }
            return (opened.pool, opened.still)
        }
    }

    /// Throws if the file changed during the read: the result may mix two moments, or be invalid.
    private func requireStill(_ still: FileState?) throws {
        guard let still, FileState(path) != still else { return }
        throw StoreError.changedMeanwhile(path: path)
    }

    private static func open(_ path: String) throws -> Opened {
        let configuration = StoreConnection.configuration(readOnly: true)
        let state = FileState(path)
        guard state.isAtRest else {
            try requireIndex(ofLogOf: path)
            return Opened(pool: try DatabasePool(path: path, configuration: configuration), still: nil)
        }
        return Opened(pool: try DatabasePool(path: stillAddress(path), configuration: configuration), still: state)
    }

    /// Throws if the log has no index and this user must not create one. SQLite creates a missing index to read a
    /// log, for example in a copy of the files. An index that belongs to another user would prevent the store's
    /// owner from writing. Only the owner may therefore create it here, or root, because SQLite then gives the index
    /// to the owner.
    private static func requireIndex(ofLogOf path: String) throws {
        var facts = stat()
        guard stat(path + "-shm", &facts) != 0, stat(path, &facts) == 0, ![0, facts.st_uid].contains(geteuid()) else {
            return
        }
        throw StoreError.cannotOpen(
            path: path,
            reason: "its \(path)-shm is missing; if this user created it, the store's owner could not write; "
                + "run any command as its owner to create it")
    }

    /// Returns an address for another connection that reads exactly what this one reads.
    static func address(of db: Database) -> String {
        guard let name = sqlite3_db_filename(db.sqliteConnection, "main") else { return "" }
        let path = String(cString: name)
        return sqlite3_uri_boolean(name, "immutable", 0) == 0 ? path : stillAddress(path)
    }

    private static func stillAddress(_ path: String) -> String {
        let full = URL(fileURLWithPath: path).path
        return "file://\(full.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? full)?immutable=1"
    }
}

/// The state that shows whether another process has written to a store. Every write begins with a log beside the file,
/// and a checkpoint of the log changes the file.
private struct FileState: Hashable {
    private var inode: UInt64 = 0
    private var bytes: Int64 = 0
    private var seconds = 0
    private var nanoseconds = 0
    /// Whether the log and the rollback journal are empty, so that the file is complete.
    let isAtRest: Bool

    init(_ path: String) {
        // Check the log first: it is removed only after everything is in the file.
        var facts = stat()
        isAtRest = ["-wal", "-journal"].allSatisfy { stat(path + $0, &facts) != 0 || facts.st_size == 0 }
        guard stat(path, &facts) == 0 else { return }
        inode = UInt64(facts.st_ino)
        bytes = Int64(facts.st_size)
        (seconds, nanoseconds) = (facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)
    }
}
