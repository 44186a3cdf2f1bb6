import Glibc

/// A loopback port that refuses every connection. It is bound, so that no other process can use it, and does not
/// listen.
package final class ClosedPort {
    package struct Failed: Error {
        package let code: Int32
    }

    package let number: Int
    private let file: Int32

    package init() throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard file >= 0 else { throw Failed(code: errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { [file] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(file, address, size) == 0 ? getsockname(file, address, &size) : -1
            }
        }
        number = Int(UInt16(bigEndian: address.sin_port))
        guard code == 0 else {
            close(file)
            throw Failed(code: errno)
        }
    }

    deinit { close(file) }
}
