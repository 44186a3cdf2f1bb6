import GRDB
import Store

extension StoreError {
    /// The error as our own kind where it has one; cancellation and errors of callers' closures pass unchanged.
    static func translated(_ error: any Error, path: String) -> any Error {
        guard let fault = error as? DatabaseError else { return error }
        let reason = "\(fault.message ?? "no message") (SQLite \(fault.extendedResultCode.rawValue))"
        switch fault.resultCode {
        case .SQLITE_INTERRUPT: return CancellationError()
        case .SQLITE_FULL: return StoreError.diskFull(path: path)
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: return StoreError.readOnly(path: path)
        case .SQLITE_BUSY, .SQLITE_LOCKED: return StoreError.busy(path: path)
        case .SQLITE_NOTADB: return StoreError.notADatabase(path: path)
        case .SQLITE_CORRUPT: return StoreError.corrupt(path: path, reason: reason)
        case .SQLITE_CANTOPEN: return StoreError.cannotOpen(path: path, reason: reason)
        default: return StoreError.failed(path: path, reason: reason)
        }
    }
}
