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
    /// `isSecret`: readable by its owner only.
    static func write(_ bytes: [UInt8], to path: String, isSecret: Bool) throws(SimulatorError) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, isSecret ? 0o600 : 0o644)
        guard file >= 0 else { throw .unwritableFile(path: path, reason: String(cString: strerror(errno))) }
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
