import Foundation
import GRDB
import GRDBSQLite
import Store
import Synchronization

/// The connections of a process that only reads.
///
/// Beside a writer they take part in its log: SQLite then opens the shared memory for reading where it may not be
/// written, and no lock is waited for. Where nobody has the store open there is no log, and SQLite would make one to read,
/// which needs a folder that may be written; so it is read as a file that stands still (`immutable`), and after each read
/// it is seen whether it did.
final class StoreReading: Sendable {
    private struct Opened {
        var pool: DatabasePool
        /// As the file was when it was opened to be read standing still; nil: through the log.
        var still: FileState?
    }

    private let path: String
    private let opened: Mutex<Opened>

    /// Throws for anything but a store of this version.
    init(path: String) throws {
        self.path = path
        opened = Mutex(try Self.open(path))
        do {
            try pool.read { try StoreFile(path: path).checkIdentity($0, for: .reading) }
        } catch {
            // What SQLite says of damage may come from a checkpoint in the middle of the look.
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

    /// Somebody may have begun to write since the last read.
    private func current() throws -> (DatabasePool, FileState?) {
        try opened.withLock { opened in
            if let still = opened.still, FileState(path) != still { opened = try Self.open(path) }
            return (opened.pool, opened.still)
        }
    }

    /// What was read may be of two moments, or no sense at all.
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

    /// To read a log that was left without its index, as in a copy of the files, SQLite makes the index. One that belongs
    /// to another user than the store would keep its owner out, so only the owner makes it here, or root, for whom SQLite
    /// gives it to the owner.
    private static func requireIndex(ofLogOf path: String) throws {
        var facts = stat()
        guard stat(path + "-shm", &facts) != 0, stat(path, &facts) == 0, ![0, facts.st_uid].contains(geteuid()) else {
            return
        }
        throw StoreError.cannotOpen(
            path: path,
            reason: "its \(path)-shm is missing, and made by this user it would keep the store's owner from writing; "
                + "any command of its owner makes it")
    }

    /// For another connection that reads just what this one does.
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

/// What tells whether somebody has written to a store: every write begins with a log beside it, and what is taken over
/// from the log changes the file.
private struct FileState: Hashable {
    private var inode: UInt64 = 0
    private var bytes: Int64 = 0
    private var seconds = 0
    private var nanoseconds = 0
    /// Nothing in a log or a rollback journal: what the file holds is all there is.
    let isAtRest: Bool

    init(_ path: String) {
        // The log first: it is removed only after everything is in the file.
        var facts = stat()
        isAtRest = ["-wal", "-journal"].allSatisfy { stat(path + $0, &facts) != 0 || facts.st_size == 0 }
        guard stat(path, &facts) == 0 else { return }
        inode = UInt64(facts.st_ino)
        bytes = Int64(facts.st_size)
        (seconds, nanoseconds) = (facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)
    }
}
