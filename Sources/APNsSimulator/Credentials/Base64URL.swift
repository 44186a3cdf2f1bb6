/// Base64 as JWTs use it (RFC 7515 section 2): `-` and `_`, no padding.
enum Base64URL {
    /// Nil for any other character. Lenient: padding and the plain alphabet (`+`, `/`) pass too.
    static func decode(_ text: some Sequence<UInt8>, lenient: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
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
