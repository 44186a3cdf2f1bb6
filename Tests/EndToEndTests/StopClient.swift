import Foundation

/// A connection that sends what it is told, as far as the kernel takes it at once, and reads only if it is told to.
final class StopClient {
    private let file: Int32

    /// - Parameters:
    ///   - source: the client's own address, one of this machine.
    ///   - patience: seconds that it waits for an answer.
    init(port: Int, from source: String = "127.0.0.1", patience seconds: Int = 30) throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var patience = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard Self.call(bind, file, source, 0) == 0, Self.call(connect, file, "127.0.0.1", port) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
    }

    private static func call(
        _ body: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ file: Int32, _ host: String, _ port: Int
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    deinit { close(file) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes {
            Foundation.send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
    }

    /// Sends all of it, unless the server takes nothing for a second.
    func sendAll(_ text: String) {
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let sent = bytes.withUnsafeBytes { Foundation.send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return }
            bytes = bytes.dropFirst(sent)
        }
    }

    @discardableResult
    func read(_ count: Int) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        let received = recv(file, &buffer, count, 0)
        return String(decoding: buffer.prefix(max(0, received)), as: UTF8.self)
    }
}
