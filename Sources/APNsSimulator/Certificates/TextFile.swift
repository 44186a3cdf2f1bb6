import Glibc

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
