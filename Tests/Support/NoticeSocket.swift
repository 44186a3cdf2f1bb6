import Foundation

/// The service manager's end of `sd_notify(3)`: a bound datagram socket, from which the test reads one message at a
/// time.
package final class NoticeSocket {
    package let name: String
    private let file: Int32
    private let directory: TemporaryDirectory

    /// - Parameter isAbstract: whether the socket has an abstract name instead of a file.
    package init(isAbstract: Bool = false) throws {
        directory = try TemporaryDirectory()
        name = isAbstract ? "@fanfare/\(UUID().uuidString)" : directory.file("notify")
        file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = isAbstract ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(2 + bytes.count)
        let bound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(file, $0, length) }
        }
        guard file >= 0, bound == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit {
        close(file)
    }

    /// Returns the next datagram. Waits for it for at most a minute.
    package func next() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(file, &buffer, buffer.count, 0)
        guard count >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Returns the messages up to the first one that begins with this text, including that one.
    package func notices(through beginning: String) throws -> [String] {
        var notices: [String] = []
        while notices.last?.hasPrefix(beginning) != true { notices.append(try next()) }
        return notices
    }
}
