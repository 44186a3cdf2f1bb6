import Foundation
import GRDB
import Store

/// The file of a store before SQLite writes to it. It is checked for its identity and its version.
struct StoreFile {
    /// `application_id` of the file header, "FNFR". Databases of other programs are not changed.
    static let applicationID = 0x464E_4652

    let path: String

    /// Checks the path before SQLite opens it. Throws unless the path leads to a file, or to nothing and a file may
    /// be created there.
    func requireFile(for access: StoreAccess) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw StoreError.noFolder(path: path)
        }
        var facts = stat()
        guard stat(path, &facts) == 0 else {
            guard errno == ENOENT else {
                throw StoreError.cannotOpen(path: path, reason: String(cString: strerror(errno)))
            }
            guard access.makes else { throw StoreError.noStore(path: path, isEmptyFile: false) }
            return
        }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw StoreError.notAFile(path: path) }
        guard facts.st_size > 0 || access.makes else { throw StoreError.noStore(path: path, isEmptyFile: true) }
        // Otherwise SQLite would open the file for reading only, and fail at the first write.
        if access != .reading, Openness.isOnReadOnlyFileSystem(path) {
            throw StoreError.readOnlyFileSystem(path: path)
        }
    }

    /// Checks the file through a connection that cannot write. Throws unless the file is missing, empty, or a store of
    /// a known version.
    func inspect(for access: StoreAccess) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        try takingBackUnfinished { try queue(readOnly: true).read { try checkIdentity($0, for: access) } }
    }

    private func queue(readOnly: Bool) throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.readonly = readOnly
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Opens the store for reading. A process that was killed while it created or restored the store leaves a journal,
    /// which only a connection that may write can apply. In this case, one does so, and the body runs again.
    func takingBackUnfinished<Opened>(_ open: () throws -> Opened) throws -> Opened {
        do {
            return try open()
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK {
            let queue = try queue(readOnly: false)
            _ = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_schema") }
            try queue.close()
            return try open()
        }
    }

    /// Makes the store's files readable by their owner only, whatever the umask. It creates an empty file if there
    /// is none, because SQLite gives the log and the shared memory the mode of the main file. It removes the
    /// permissions of other accounts. Returns a description of the files that other accounts could access, and
    /// whether they still can. Returns `nil` if there was no such file.
    ///
    /// It opens no file descriptor, because closing one would drop the locks that other connections of this process
    /// hold.
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
                "\(name) was accessible to other users (mode \(mode))"
                    + (isClosed ? "; it is 600 now" : ", and chmod failed"))
        }
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    /// Creates an empty file. Leaves an existing file unchanged.
    static func makeEmpty(_ path: String) throws {
        if mknod(path, S_IFREG | 0o600, 0) == 0 {
            // The umask may have removed permissions that the owner needs.
            chmod(path, 0o600)
        } else if errno != EEXIST {
            throw StoreError.cannotOpen(path: path, reason: String(cString: strerror(errno)))
        }
    }

    func checkIdentity(_ db: Database, for access: StoreAccess) throws {
        let application = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        // A database without tables is an unfinished store, or an empty database of another program.
        guard application == Self.applicationID || (tables == 0 && access.makes) else {
            throw StoreError.notAStore(path: path)
        }
        guard version <= Schema.version else {
            throw StoreError.newerVersion(path: path, found: version, known: Schema.version)
        }
        guard access != .reading || version == Schema.version else {
            throw StoreError.olderVersion(path: path, found: version, known: Schema.version)
        }
    }
}
