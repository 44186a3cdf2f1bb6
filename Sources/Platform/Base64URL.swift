/// Base64 with `-` and `_` and without padding (RFC 4648 section 5), as JSON web tokens use it.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
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

    /// Returns `nil` for any other character. If lenient, padding and the plain alphabet (`+`, `/`) are also accepted.
    package static func decode(_ text: [UInt8], lenient: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        var characters = 0
        var isPadded = false
        for character in text {
            if lenient, character == UInt8(ascii: "=") {
                isPadded = true
                continue
            }
            guard !isPadded, let value = value(of: character, lenient: lenient) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            characters += 1
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return characters % 4 == 1 ? nil : bytes
    }

    private static func value(of character: UInt8, lenient: Bool) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        case UInt8(ascii: "+") where lenient: 62
        case UInt8(ascii: "/") where lenient: 63
        default: nil
        }
    }
}
