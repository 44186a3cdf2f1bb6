import Foundation
import Store

/// The lock under which a process copies and migrates a store of an older version. The kernel frees it when the process
/// exits.
enum UpgradeLock {
    /// The suffix of the lock file, after the store's path. The file exists only during an upgrade, or after one that
    /// was killed.
    static let suffix = "-upgrade"

    /// Runs `body` under the lock. Throws ``StoreError/upgrading(_:)`` if another process holds it.
    static func hold(_ store: String, _ body: () throws -> Void) throws {
        let path = store + suffix
        let file = try take(path, of: store)
        defer {
            unlink(path)
            close(file)
        }
        try body()
    }

    private static func take(_ path: String, of store: String) throws -> Int32 {
        while true {
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw failure(path) }
            // After a crash of root's process, the service's user must be able to open the file.
            var facts = stat()
            if stat(store, &facts) == 0 { _ = fchown(file, facts.st_uid, facts.st_gid) }
            guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
                let error = errno == EWOULDBLOCK ? StoreError.upgrading(store) : failure(path)
                close(file)
                throw error
            }
            // The process that held the lock may just have removed this file.
            var (here, there) = (stat(), stat())
            if fstat(file, &here) == 0, lstat(path, &there) == 0, here.st_ino == there.st_ino { return file }
            close(file)
        }
    }

    private static func failure(_ path: String) -> StoreError {
        errno == ENOSPC || errno == EDQUOT
            ? .diskFull(path: path) : .cannotMake(path: path, reason: String(cString: strerror(errno)))
    }
}
