import Foundation

/// A new file beside a target. It is moved to the target's place once it is complete.
///
/// The writer holds a lock on one byte of the draft for as long as the value lives. The kernel releases the lock when
/// the process exits, even if it was killed. So a draft without a lock is abandoned, and the next writer to the same
/// target removes it. On a file system without locks, abandoned drafts stay.
package final class Draft {
    /// Far behind the bytes that SQLite locks in its files.
    private static let lockedByte: Int64 = 1 << 62
    private static let ending = ".part"
    /// The files that SQLite keeps beside a database.
    private static let companions = ["-journal", "-wal", "-shm"]

    package let path: String
    let file: Int32

    /// Creates an empty draft that only its owner may read.
    init(of target: String) throws(OutputFault) {
        let folder = OutputPath.folder(of: target)
        let start = ".\(OutputPath.shortened(target.split(separator: "/").last ?? ""))."
        Self.removeAbandoned(start, in: folder)
        while true {
            let number = String(UInt32.random(in: 0 ... .max), radix: 16)
            let path = "\(folder)/\(start)\(number)\(Self.ending)"
            let file = try OutputPath.open(path, O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
            // The umask may have removed rights that the owner needs.
            fchmod(file, 0o600)
            _ = Self.lock(file)
            var facts = stat()
            // Another writer to the target may have removed the draft before it was locked.
            if fstat(file, &facts) == 0, facts.st_nlink > 0 {
                (self.path, self.file) = (path, file)
                return
            }
            close(file)
        }
    }

    deinit { close(file) }

    /// Fills the draft with the content of a file.
    package func copy(_ file: String) throws {
        let draft = try FileHandle(forWritingTo: URL(filePath: path))
        try draft.write(contentsOf: try Data(contentsOf: URL(filePath: file), options: .mappedIfSafe))
        try draft.close()
    }

    /// Removes the draft, and the files of SQLite beside it.
    package func remove() { Self.remove(path) }

    private static func remove(_ path: String) {
        for end in [""] + companions { unlink(path + end) }
    }

    private static func removeAbandoned(_ start: String, in folder: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            guard name.hasPrefix(start), name.hasSuffix(ending), name.utf8.count > start.utf8.count + ending.utf8.count
            else { continue }
            let number = name.dropFirst(start.count).dropLast(ending.count)
            guard UInt32(number, radix: 16) != nil else { continue }
            let path = "\(folder)/\(name)"
            guard let file = try? OutputPath.open(path, O_NOFOLLOW | O_NONBLOCK, 0) else { continue }
            var facts = stat()
            if fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, lock(file) { remove(path) }
            close(file)
        }
    }

    /// Returns `false` if another open file holds the lock, or if the file system has no locks.
    private static func lock(_ file: Int32) -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(lockedByte)
        lock.l_len = 1
        // F_OFD_SETLK of <fcntl.h>, which Swift imports without _GNU_SOURCE.
        return fcntl(file, 37, &lock) == 0
    }
}
