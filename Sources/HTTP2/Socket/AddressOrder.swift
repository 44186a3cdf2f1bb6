/// In which order addresses are tried: connections spread over them, and neither family can hold the other up
/// (`ProviderProtocol` section 8, RFC 8305 section 4).
enum AddressOrder {
    /// Within a family the order is the same whatever the resolver shuffled, beginning at another place with every
    /// `turn`; the families alternate, beginning with that of the resolver's first choice.
    static func of(_ found: [SocketAddress], turn: Int) -> [SocketAddress] {
        guard let first = found.first else { return [] }
        var preferred = rotated(found.filter { $0.isV6 == first.isV6 }, by: turn)[...]
        var others = rotated(found.filter { $0.isV6 != first.isV6 }, by: turn)[...]
        var order: [SocketAddress] = []
        while !preferred.isEmpty || !others.isEmpty {
            if let address = preferred.popFirst() { order.append(address) }
            if let address = others.popFirst() { order.append(address) }
        }
        return order
    }

    private static func rotated(_ addresses: [SocketAddress], by turn: Int) -> [SocketAddress] {
        guard !addresses.isEmpty else { return [] }
        let sorted = addresses.map { (host: $0.host, address: $0) }.sorted { $0.host < $1.host }.map(\.address)
        let start = Int(UInt(bitPattern: turn) % UInt(sorted.count))
        return Array(sorted[start...] + sorted[..<start])
    }
}
