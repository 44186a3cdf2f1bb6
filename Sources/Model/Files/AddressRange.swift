import Foundation

/// An IP address. An IPv4-mapped or NAT64 (`64:ff9b::/96`) IPv6 address counts as the embedded IPv4 address, because a
/// connection to it reaches the IPv4 host.
package struct IPAddress: Hashable, Sendable {
    /// 4 or 16 bytes, in network order.
    package let bytes: [UInt8]

    /// - Parameter bytes: 4 or 16 bytes in network order. Any other number of bytes returns `nil`.
    package init?(bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16:
            let head = Array(bytes.prefix(12))
            self.bytes = head == Self.mapped || head == Self.nat64 ? Array(bytes.suffix(4)) : bytes
        default: return nil
        }
    }

    /// - Parameter text: `192.0.2.1` or `2001:db8::1`.
    package init?(_ text: String) {
        guard let bytes = text.contains(":") ? Self.sixteen(text) : Self.four(text) else { return nil }
        self.init(bytes: bytes)
    }

    private static func four(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { part in UInt8(part).flatMap { "\($0)" == part ? $0 : nil } }
        return parts.count == 4 && bytes.count == 4 ? bytes : nil
    }

    /// Parses the notation of RFC 4291 section 2.2. One `::` stands for omitted groups, and the last 4 bytes may be
    /// written as IPv4.
    private static func sixteen(_ text: String) -> [UInt8]? {
        guard text.utf8.count <= 45 else { return nil }
        let halves = text.components(separatedBy: "::")
        let groups = halves.map(groups)
        guard halves.count <= 2, let head = groups[0] else { return nil }
        guard halves.count == 2 else { return head.count == 16 ? head : nil }
        guard let tail = groups[1], head.count + tail.count <= 14 else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    private static func groups(_ text: String) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains(".") {
                guard let four = four(part) else { return nil }
                bytes += four
            } else {
                let isHex = part.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
                guard (1...4).contains(part.utf8.count), isHex, let group = UInt16(part, radix: 16) else { return nil }
                bytes += [UInt8(group >> 8), UInt8(truncatingIfNeeded: group)]
            }
        }
        return bytes
    }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    private static let nat64: [UInt8] = [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]

    /// Whether the address belongs to the public internet: not loopback, link-local, private, CGNAT, multicast,
    /// unspecified, reserved, for documentation, or one that wraps another address (6to4, Teredo).
    package var isPublic: Bool {
        bytes.count == 4
            ? !Self.special4.contains { $0.contains(self) }
            : Self.global6.contains { $0.contains(self) } && !Self.special6.contains { $0.contains(self) }
    }

    private static let special4 = AddressRange.all(
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/3")
    private static let global6 = AddressRange.all("2000::/3")
    private static let special6 = AddressRange.all("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
}

extension IPAddress: CustomStringConvertible {
    package var description: String {
        guard bytes.count == 16 else { return bytes.map { "\($0)" }.joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map { index in
            let group = UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
            return String(group, radix: 16)
        }
        return groups.joined(separator: ":")
    }
}

/// A range of IP addresses, as `10.0.0.0/8`, `fd00::/8`, or one address.
package struct AddressRange: Hashable, Sendable {
    private let address: IPAddress
    private let bits: Int

    /// Returns `nil` unless the text is an address, or an address with its number of leading bits.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ IPAddress(String($0)) }) else { return nil }
        self.address = address
        let most = address.bytes.count * 8
        guard parts.count == 2 else {
            bits = most
            return
        }
        guard let given = Int(parts[1]), "\(given)" == parts[1] else { return nil }
        // `::ffff:10.0.0.0/104` is a range of IPv4 addresses.
        let bits = given - (most == 32 && parts[0].contains(":") ? 96 : 0)
        guard (0...most).contains(bits) else { return nil }
        self.bits = bits
    }

    package func contains(_ other: IPAddress) -> Bool {
        guard other.bytes.count == address.bytes.count else { return false }
        return (0..<bits).allSatisfy { bit in
            let difference = other.bytes[bit / 8] ^ address.bytes[bit / 8]
            let mask: UInt8 = 0x80 >> (bit % 8)
            return difference & mask == 0
        }
    }

    fileprivate static func all(_ texts: String...) -> [AddressRange] { texts.compactMap { AddressRange($0) } }
}
