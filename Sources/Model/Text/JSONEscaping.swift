/// Escapes texts for JSON strings. UTF-8 stays as it is. Only the characters that RFC 8259 section 7 requires are
/// escaped, in the shortest form (`\n`, `\t`, `\r`, otherwise `\u00` and two lower-case hex digits). All of Fanfare
/// uses this code: payloads, stored JSON, logs and schemas.
package enum JSONEscaping {
    /// The maximum number of bytes that one byte of a text becomes: `\u001f`.
    package static let growthMax = 6

    /// Appends the inside of a JSON string, without the quotes. A text without characters to escape is copied whole,
    /// because this runs for every device of a personalised run.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        let utf8 = text.utf8
        let span = utf8.span
        for index in span.indices where needsEscape(span[index]) {
            for index in span.indices { append(span[index], to: &bytes) }
            return
        }
        bytes.append(contentsOf: utf8)
    }

    /// Appends a JSON string, including quotes.
    package static func appendQuoted(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        append(text, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Returns a text as a JSON string, including quotes.
    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 2)
        appendQuoted(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""): bytes.append(contentsOf: #"\""#.utf8)
        case UInt8(ascii: "\\"): bytes.append(contentsOf: #"\\"#.utf8)
        case 0x0A: bytes.append(contentsOf: #"\n"#.utf8)
        case 0x0D: bytes.append(contentsOf: #"\r"#.utf8)
        case 0x09: bytes.append(contentsOf: #"\t"#.utf8)
        case 0..<0x20:
            bytes.append(contentsOf: (byte < 0x10 ? #"\u000"# : #"\u00"#).utf8)
            bytes.append(contentsOf: String(byte, radix: 16).utf8)
        default: bytes.append(byte)
        }
    }
}
