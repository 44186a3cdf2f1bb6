import CNGHTTP2
import Glibc

/// The address and port of a TCP peer, IPv4 or IPv6.
struct SocketAddress: Sendable {
    private let storage: sockaddr_storage
    private let length: socklen_t

    init(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
        var storage = sockaddr_storage()
        let length = min(length, socklen_t(MemoryLayout<sockaddr_storage>.size))
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
        }
        self.storage = storage
        self.length = length
    }

    var isV6: Bool { storage.ss_family == sa_family_t(AF_INET6) }

    /// The address without its port, such as `127.0.0.1` or `2001:db8::1`.
    var host: String {
        withAddress { address, length in
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let code = getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            guard code == 0 else { return "?" }
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    func withAddress<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}

extension SocketAddress {
    struct ResolveFault: Error {
        let reason: String
    }

    /// Returns the address of a host that is written as an address, or `nil` for a name. Needs no resolver.
    static func written(host: String, port: Int) -> SocketAddress? {
        lookUp(host: host, port: port, flags: AI_NUMERICHOST).found.first
    }

    /// Queries the system's resolver, which may take many seconds.
    static func resolve(host: String, port: Int) throws(ResolveFault) -> [SocketAddress] {
        let (code, found) = lookUp(host: host, port: port, flags: 0)
        guard code == 0 else { throw ResolveFault(reason: String(cString: gai_strerror(code))) }
        guard !found.isEmpty else { throw ResolveFault(reason: "the host name has no address") }
        return found
    }

    private static func lookUp(host: String, port: Int, flags: Int32) -> (code: Int32, found: [SocketAddress]) {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICSERV | flags
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else { return (code, []) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            let isInternet = entry.ai_family == AF_INET || entry.ai_family == AF_INET6
            if isInternet, let address = entry.ai_addr {
                found.append(SocketAddress(address, length: entry.ai_addrlen))
            }
            next = entry.ai_next
        }
        return (0, found)
    }
}

/// The order in which addresses are tried. Connections are distributed over the addresses, and neither family can delay
/// the other (RFC 8305 section 4).
enum AddressSequence {
    /// Returns the addresses in order. Within a family they are sorted, and `rotation` selects the first one. The
    /// families alternate, beginning with that of the resolver's first address.
    static func of(_ found: [SocketAddress], rotation: Int) -> [SocketAddress] {
        guard let first = found.first else { return [] }
        var preferred = rotated(found.filter { $0.isV6 == first.isV6 }, by: rotation)[...]
        var others = rotated(found.filter { $0.isV6 != first.isV6 }, by: rotation)[...]
        var sequence: [SocketAddress] = []
        while !preferred.isEmpty || !others.isEmpty {
            if let address = preferred.popFirst() { sequence.append(address) }
            if let address = others.popFirst() { sequence.append(address) }
        }
        return sequence
    }

    private static func rotated(_ addresses: [SocketAddress], by rotation: Int) -> [SocketAddress] {
        guard !addresses.isEmpty else { return [] }
        let sorted = addresses.map { (host: $0.host, address: $0) }.sorted { $0.host < $1.host }.map(\.address)
        let start = Int(UInt(bitPattern: rotation) % UInt(sorted.count))
        return Array(sorted[start...] + sorted[..<start])
    }
}
