import Foundation
import GRDB
import GRDBSQLite
import Platform
import Store

extension StoreError {
    /// Returns the matching `StoreError`, if there is one. Cancellation and errors of callers' closures pass
    /// unchanged.
    static func translated(_ error: any Error, path: String) -> any Error {
        if let value = UnreadableValue(error) { return StoreError.corrupt(path: path, reason: "\(value)") }
        guard let fault = error as? DatabaseError else { return error }
        switch fault.resultCode {
        case .SQLITE_INTERRUPT: return CancellationError()
        case .SQLITE_FULL: return StoreError.diskFull(path: path)
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            return Openness.isOnReadOnlyFileSystem(path)
                ? StoreError.readOnlyFileSystem(path: path) : StoreError.readOnly(path: path)
        case .SQLITE_NOMEM: return StoreError.exhausted(path: path, reason: "this process cannot allocate memory")
        case .SQLITE_BUSY, .SQLITE_LOCKED: return StoreError.busy(path: path)
        case .SQLITE_NOTADB: return StoreError.notADatabase(path: path)
        case .SQLITE_CORRUPT: return StoreError.corrupt(path: path, reason: fault.message ?? "no message")
        case .SQLITE_CANTOPEN: return Openness(path).fault
        case .SQLITE_IOERR: return inputOutput(fault, path)
        default:
            return StoreError.failed(
                path: path, reason: "\(fault.message ?? "no message") (SQLite \(fault.extendedResultCode.rawValue))")
        }
    }

    /// Returns the error for a failed read or write. SQLite reports which call failed, but not why, so this checks
    /// the disk for the usual reason.
    private static func inputOutput(_ fault: DatabaseError, _ path: String) -> StoreError {
        let code = fault.extendedResultCode
        let isWriting = [
            .SQLITE_IOERR_WRITE, .SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_SHMMAP, .SQLITE_IOERR_SHMOPEN,
            .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_DIR_FSYNC, .SQLITE_IOERR_TRUNCATE, .SQLITE_IOERR_CLOSE,
        ].contains(code)
        if isWriting, Openness.isFull(path) { return .diskFull(path: path) }
        if isWriting, Openness.isOnReadOnlyFileSystem(path) { return .readOnlyFileSystem(path: path) }
        let what =
            switch code {
            case .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ: "reading from it"
            case .SQLITE_IOERR_LOCK, .SQLITE_IOERR_UNLOCK, .SQLITE_IOERR_RDLOCK, .SQLITE_IOERR_CHECKRESERVEDLOCK,
                .SQLITE_IOERR_SHMLOCK:
                "locking it"
            case .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_DIR_FSYNC: "flushing it to disk"
            case .SQLITE_IOERR_DELETE: "removing its log"
            default: isWriting ? "writing to it" : "using its files"
            }
        return .inputOutput(path: path, what: what)
    }
}

/// The reason why this user cannot open a file or one of the files beside it.
struct Openness {
    /// The free space below which SQLite cannot even create the shared memory of a log.
    private static let neededBytes = 65_536
    /// `ST_RDONLY`.
    private static let readOnlyFlag: UInt = 1

    let path: String

    init(_ path: String) { self.path = path }

    var fault: StoreError {
        // Find the reason by a repetition of the call that failed.
        let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let code = errno
        if file >= 0 { close(file) }
        if file < 0, [EMFILE, ENFILE, ENOMEM].contains(code) {
            return .exhausted(path: path, reason: String(cString: strerror(code)))
        }
        if access(path, R_OK) == 0, Self.isOnReadOnlyFileSystem(path) { return .readOnlyFileSystem(path: path) }
        return .cannotOpen(path: path, reason: reason)
    }

    private var reason: String {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return String(cString: strerror(errno)) }
        guard access(path, R_OK) == 0 else { return "this user may not read the store" }
        for file in ["-wal", "-shm"].map({ path + $0 }) where stat(file, &facts) == 0 {
            guard access(file, R_OK) == 0 else { return "this user may not read \(file), which belongs to the store" }
        }
        if stat(path + "-wal", &facts) == 0, stat(path + "-shm", &facts) != 0 {
            return "its \(path)-shm is missing and cannot be created here; run any command as its owner to create it"
        }
        return "this user may not write to its folder"
    }

    static func isOnReadOnlyFileSystem(_ path: String) -> Bool {
        var facts = statvfs()
        return statvfs(path, &facts) == 0 && facts.f_flag & readOnlyFlag != 0
    }

    static func isFull(_ path: String) -> Bool {
        DiskSpace(around: path)?.isFull(for: neededBytes) ?? false
    }
}
