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

    /// Most texts hold nothing to escape and are copied whole: this runs for every device of a personalised run.
    static func appendEscaped(_ text: String, to bytes: inout [UInt8]) {
        let isCopied: Void? = text.utf8.withContiguousStorageIfAvailable { utf8 in
            if utf8.contains(where: needsEscape) {
                for byte in utf8 { appendEscaped(byte, to: &bytes) }
            } else {
                bytes.append(contentsOf: utf8)
            }
        }
        if isCopied == nil {
            for byte in text.utf8 { appendEscaped(byte, to: &bytes) }
        }
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func appendEscaped(_ byte: UInt8, to bytes: inout [UInt8]) {
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

    /// A number without the detour over a text.
    static func append(_ number: Int64, to bytes: inout [UInt8]) {
        guard number >= 0 else {
            bytes.append(contentsOf: String(number).utf8)
            return
        }
        let start = bytes.count
        var rest = number
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    mutating func take() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }
}
