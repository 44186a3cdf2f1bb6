import Glibc

/// Reads a file line by line through one buffer, whatever its size.
enum LineReader {
    private static let chunkBytes = 256 * 1024

    /// Calls `body` with each line that is not empty, without its end, and its number from 1.
    static func forEachLine(of path: String, _ body: (Int, ArraySlice<UInt8>) throws -> Void) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw SimulatorError.unreadableFile(path: path, reason: String(cString: strerror(errno)))
        }
        defer { close(file) }
        var buffer: [UInt8] = []
        var number = 0
        while true {
            let kept = buffer.count
            buffer.append(contentsOf: repeatElement(0, count: chunkBytes))
            let count = buffer.withUnsafeMutableBytes { read(file, $0.baseAddress.map { $0 + kept }, chunkBytes) }
            guard count >= 0 else {
                throw SimulatorError.unreadableFile(path: path, reason: String(cString: strerror(errno)))
            }
            buffer.removeLast(chunkBytes - count)
            var start = 0
            while let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
                number += 1
                if end > start { try body(number, buffer[start..<end]) }
                start = end + 1
            }
            if count == 0 {
                if start < buffer.count { try body(number + 1, buffer[start...]) }
                return
            }
            buffer.removeFirst(start)
        }
    }
}

/// Small files, whole.
enum TextFile {
    /// For its owner's eyes only, whatever the umask, and also where there was a file before.
    ///
    /// - Parameter flags: how to open it besides: `O_TRUNC`, `O_APPEND`.
    static func open(_ path: String, _ flags: Int32) throws(SimulatorError) -> Int32 {
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o600)
        guard file >= 0 else { throw .unwritableFile(path: path, reason: String(cString: strerror(errno))) }
        // A device has a mode of its own, and somebody else's file stays as it is.
        var facts = stat()
        if fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG { fchmod(file, 0o600) }
        return file
    }

    static func write(_ bytes: [UInt8], to path: String) throws(SimulatorError) {
        let file = try open(path, O_TRUNC)
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw .unwritableFile(path: path, reason: String(cString: strerror(errno)))
        }
    }

    static func read(_ path: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try LineReader.forEachLine(of: path) { _, line in
            bytes.append(contentsOf: line)
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }
}
