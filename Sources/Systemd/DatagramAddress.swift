import Glibc

/// The address of a unix datagram socket: a path, or a name in the abstract name space, written with `@` in front.
struct DatagramAddress: Sendable {
    /// What `sun_path` holds, less the closing zero of a path.
    static let nameBytesMax = 107
    static let sendSecondsMax = 2

    private let name: String
    private let address: sockaddr_un
    private let length: socklen_t

    init(_ name: String) throws(ServiceManagerError) {
        var bytes = Array(name.utf8)
        guard let first = name.first, first == "/" || first == "@", (2...Self.nameBytesMax).contains(bytes.count),
            !bytes.contains(0)
        else { throw .unusableAddress(name) }
        // An abstract name begins with a zero and has none at its end: the length says where it ends.
        if first == "@" { bytes[0] = 0 } else { bytes.append(0) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        self.name = name
        self.address = address
        length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2) + socklen_t(bytes.count)
    }

    func send(_ text: String) throws(ServiceManagerError) {
        let file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { throw failure() }
        defer { close(file) }
        var limit = timeval(tv_sec: Self.sendSecondsMax, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(text.utf8)
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(file, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
        guard sent == bytes.count else { throw failure() }
    }

    private func failure() -> ServiceManagerError {
        .notSent(address: name, reason: String(cString: strerror(errno)))
    }
}
