import Foundation

/// A lock of another process under which no process can write to a store.
///
/// The kernel names the process, so this needs no connection and no wait. Closing a file ends the locks of this process
/// on it: call it only while this process does not have the store open.
package struct StoreLock: Hashable, Sendable {
    /// The bytes that SQLite locks in the file: pending, reserved, and shared.
    private static let inFile: (start: Int64, length: Int64) = (0x4000_0000, 512)
    /// The byte that the writer locks in the shared memory of the log.
    private static let inLog: (start: Int64, length: Int64) = (120, 1)

    /// The number of the process; `nil` if it is not visible here, such as a process of another container.
    package let process: Int32?

    /// Returns the lock on the store at a path; `nil` if there is none now.
    package static func find(_ path: String) -> StoreLock? {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        return find(path, inFile) ?? find(path + "-shm", inLog)
    }

    private static func find(_ path: String, _ bytes: (start: Int64, length: Int64)) -> StoreLock? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        // A question for a shared lock: readers hold shared locks, and are in no writer's way.
        var lock = flock()
        lock.l_type = Int16(F_RDLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(bytes.start)
        lock.l_len = off_t(bytes.length)
        guard fcntl(file, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return nil }
        return StoreLock(process: lock.l_pid > 0 ? lock.l_pid : nil)
    }

    /// The process for a person: `process 4711 (sqlite3)`.
    package var holder: String {
        guard let process else { return "a process that is not visible here, such as one of another container" }
        let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        return "process \(process)" + (name.map { " (\($0.trimmingCharacters(in: .whitespacesAndNewlines)))" } ?? "")
    }
}
