import Model

/// JSON written straight into bytes: UTF-8 as it is, only what RFC 8259 section 7 demands escaped.
struct JSONBytes {
    private(set) var bytes: [UInt8] = []

    mutating func raw(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    mutating func raw(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    mutating func key(_ name: String, isFirst: inout Bool) {
        if !isFirst { raw(",") }
        isFirst = false
        string(name)
        raw(":")
    }

    mutating func string(_ text: String) {
        raw("\"")
        escaped(text)
        raw("\"")
    }

    /// The inside of a JSON string, without the quotes.
    mutating func escaped(_ text: String) {
        Self.appendEscaped(text, to: &bytes)
    }

    static func appendEscaped(_ text: String, to bytes: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
            case 0x0A: bytes.append(contentsOf: #"\n"#.utf8)
            case 0x0D: bytes.append(contentsOf: #"\r"#.utf8)
            case 0x09: bytes.append(contentsOf: #"\t"#.utf8)
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                bytes.append(contentsOf: (digits.utf8.count == 1 ? #"\u000"# : #"\u00"#).utf8)
                bytes.append(contentsOf: digits.utf8)
            default: bytes.append(byte)
            }
        }
    }

    mutating func take() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }
}
