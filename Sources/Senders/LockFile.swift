import Foundation
import Store
import Synchronization

/// The content of the lock file of a ``SenderFolder``, and the bytes that processes lock.
struct LockFile {
    /// The byte held briefly by a process that draws a number. A restore holds it until the restore ends.
    static let drawing: Int64 = 0
    /// The byte held by the daemon.
    static let daemon: Int64 = 1
    /// The byte of the first sender. The bytes between it and ``daemon`` are reserved.
    static let firstSender: Int64 = 16

    private static let title = "Senders of the store beside this folder: each holds a lock on this file. Do not delete."
    private static let bytes = 512

    /// The identifier created with the file. A sender's number is valid only with the epoch of its lock file.
    var epoch: String
    var next: Int64
    /// The name of the last daemon.
    var daemon: String?

    init(epoch: String, next: Int64, daemon: String? = nil) {
        self.epoch = epoch
        self.next = next
        self.daemon = daemon
    }

    /// Returns `nil` if nothing was written yet. Throws ``SenderError/lockFileDamaged(path:)`` if the content is
    /// invalid.
    init?(reading file: Int32, _ path: String) throws {
        var buffer = [UInt8](repeating: 0, count: Self.bytes)
        let count = pread(file, &buffer, buffer.count, 0)
        guard count >= 0 else { throw Self.failure(errno, path) }
        if count == 0 { return nil }
        let lines = String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: "\n").dropFirst()
        let fields = Dictionary(lines.map { Self.field($0) }) { first, _ in first }
        guard let epoch = fields["epoch"], UUID(uuidString: epoch) != nil,
            let next = fields["next"].flatMap({ Int64($0) }), next >= Self.firstSender
        else { throw SenderError.lockFileDamaged(path: path) }
        self.init(epoch: epoch, next: next, daemon: fields["daemon"])
    }

    private static func field(_ line: Substring) -> (String, String) {
        let parts = line.split(separator: " ", maxSplits: 1)
        return (String(parts.first ?? ""), parts.count > 1 ? String(parts[1]) : "")
    }

    /// Writes the content and returns when it is on disk, so that a number is not drawn twice after a power failure.
    func write(to file: Int32, _ path: String) throws {
        let daemon = daemon.map { "daemon \($0)\n" } ?? ""
        // Always write the same size, so that nothing of the old content remains.
        let text = Array("\(Self.title)\nepoch \(epoch)\nnext \(next)\n\(daemon)".utf8)
        let block = text + [UInt8](repeating: 0x20, count: max(0, Self.bytes - 1 - text.count)) + [0x0A]
        guard pwrite(file, block, block.count, 0) == block.count, fsync(file) == 0 else {
            throw Self.failure(errno, path)
        }
    }

    /// Whether the path still names the file that is open here.
    static func isAt(_ path: String, _ file: Int32) -> Bool {
        var here = stat()
        var there = stat()
        return fstat(file, &here) == 0 && here.st_nlink > 0 && lstat(path, &there) == 0
            && here.st_ino == there.st_ino && here.st_dev == there.st_dev
    }

    /// Returns the error for a failed operation on the folder or a file in it.
    static func failure(_ code: Int32, _ path: String) -> any Error {
        code == ENOSPC || code == EDQUOT
            ? StoreError.diskFull(path: path) : SenderError.senderFolder(path: path, reason: summary(code))
    }

    static func summary(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// The kernel's file operations. A test may replace them to simulate a file system without locks, or too many open
/// files.
package struct FileLocks: Sendable {
    package enum Request: Sendable {
        case set, get
    }

    /// Opens a file. Returns a descriptor, or the negative error number.
    package var open: @Sendable (_ path: String, _ flags: Int32) -> Int32
    /// Sets or queries the lock of a range of bytes. Returns the lock that blocks a `get`, and the error number or 0.
    package var lock:
        @Sendable (_ file: Int32, _ request: Request, _ type: Int16, _ start: Int64, _ length: Int64) -> (
            type: Int16, code: Int32
        )

    package static let kernel = FileLocks(
        open: { path, flags in
            let file = Foundation.open(path, flags, 0o600)
            return file >= 0 ? file : -errno
        },
        lock: { file, request, type, start, length in
            var lock = flock()
            lock.l_type = type
            lock.l_whence = Int16(SEEK_SET)
            lock.l_start = off_t(start)
            lock.l_len = off_t(length)
            // F_OFD_SETLK and F_OFD_GETLK of <fcntl.h>, which Swift imports without _GNU_SOURCE.
            let code = fcntl(file, request == .set ? 37 : 36, &lock)
            return (lock.l_type, code == 0 ? 0 : errno)
        })

    /// The number of tries to lock the byte for drawing. A process holds it for some milliseconds, and longer only if
    /// it was stopped just then.
    private static let drawingTriesMax = 1_000
    private static let drawingPauseMicroseconds: UInt32 = 5_000

    /// Locks a byte exclusively, until the file is closed. Returns `false` if another open file holds it.
    func take(_ byte: Int64, of file: Int32, _ path: String) throws -> Bool {
        while true {
            let code = lock(file, .set, Int16(F_WRLCK), byte, 1).code
            switch code {
            case 0: return true
            case EAGAIN, EACCES: return false
            case EINTR: continue
            default: throw SenderError.noLocks(path: path, reason: LockFile.summary(code))
            }
        }
    }

    /// Returns whether another open file holds one of these bytes.
    ///
    /// - Parameter length: the number of bytes. 0 means all that follow.
    func isHeld(_ byte: Int64, length: Int64 = 1, of file: Int32, _ path: String) throws -> Bool {
        let answer = lock(file, .get, Int16(F_WRLCK), byte, length)
        guard answer.code == 0 else { throw SenderError.noLocks(path: path, reason: LockFile.summary(answer.code)) }
        return answer.type != Int16(F_UNLCK)
    }

    /// Locks the byte, and waits up to about 5 s for another process that holds it.
    func wait(for byte: Int64, of file: Int32, _ path: String) throws {
        var tries = 0
        while try !take(byte, of: file, path) {
            tries += 1
            guard tries < Self.drawingTriesMax else { throw SenderError.lockFileBusy(path: path) }
            usleep(Self.drawingPauseMicroseconds)
        }
    }

    /// Holds the byte while `body` runs. Waits up to about 5 s for another process that holds it.
    func whileHolding<Value>(_ byte: Int64, of file: Int32, _ path: String, _ body: () throws -> Value) throws -> Value
    {
        try wait(for: byte, of: file, path)
        defer { _ = lock(file, .set, Int16(F_UNLCK), byte, 1) }
        return try body()
    }
}

extension SenderFolder {
    /// The suffix of a folder beside a store, after the store's path.
    package static let suffix = "-senders"

    /// Whether a process was ever a sender of the store.
    package var hasDrawn: Bool { (try? header()) != nil }

    /// Keeps every process from becoming a sender until the hold is released. Waits some seconds for another process
    /// that holds the byte, then throws ``SenderError/lockFileBusy(path:)``.
    package func holdStarts() throws -> StartHold {
        try makeFolder()
        while true {
            let file = locks.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { throw LockFile.failure(-file, lockPath) }
            let hold = StartHold(file, folder: self, locks)
            try locks.wait(for: LockFile.drawing, of: file, lockPath)
            guard LockFile.isAt(lockPath, file) else { continue }
            fchmod(file, 0o600)
            return hold
        }
    }
}

/// Keeps senders from starting, see ``SenderFolder/holdStarts()``.
package final class StartHold: Sendable {
    private let folder: SenderFolder
    private let locks: FileLocks
    /// The open lock file. Negative after the release.
    private let file: Mutex<Int32>

    init(_ file: Int32, folder: SenderFolder, _ locks: FileLocks) {
        self.folder = folder
        self.locks = locks
        self.file = Mutex(file)
    }

    deinit { release() }

    package func release() {
        file.withLock { file in
            guard file >= 0 else { return }
            // The store may not have existed when the folder was created.
            for path in [folder.path, folder.lockPath] { folder.handOver(path) }
            _ = locks.lock(file, .set, Int16(F_UNLCK), 0, 0)
            close(file)
            file = -1
        }
    }
}
