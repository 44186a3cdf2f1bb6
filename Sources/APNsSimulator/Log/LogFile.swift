import Glibc

/// An append-only file written in large pieces. One user at a time.
final class LogFile {
    private static let bufferBytes = 64 * 1024

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(path: String) throws(SimulatorError) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw .unwritableFile(path: path, reason: String(cString: strerror(errno)))
        }
    }

    deinit {
        flush()
        close(descriptor)
    }

    func append(line: [UInt8]) {
        buffer.append(contentsOf: line)
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= Self.bufferBytes { flush() }
    }

    /// A full disk loses lines: there is nobody to tell on this thread.
    func flush() {
        var offset = 0
        while offset < buffer.count {
            let count = buffer.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + offset }, $0.count - offset)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            offset += count
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
