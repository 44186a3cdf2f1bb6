/// Base64 with the URL alphabet and without padding (RFC 4648 section 5), as JSON web tokens use it.
enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= UInt32(8 * (3 - group.count))
            for character in 0...group.count {
                text.append(alphabet[Int(bits >> UInt32(18 - 6 * character)) & 63])
            }
        }
        return text
    }
}
