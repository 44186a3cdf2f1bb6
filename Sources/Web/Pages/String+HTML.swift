import Mustache

extension String {
    /// Returns the text escaped for HTML or SVG, also for use within quotes. Pages, reports and charts use no other
    /// escaper.
    ///
    /// The escaper works on bytes. A `Character` may combine `<` with the scalars before or after it, which an HTML
    /// parser does not do. The escaper drops the ASCII control characters except tab, line feed and carriage return.
    /// It also drops U+FFFE and U+FFFF, which XML forbids.
    var escapedHTML: String {
        guard utf8.contains(where: Self.mustEscape) else { return self }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count + utf8.count / 8)
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "&"): bytes += "&amp;".utf8
            case UInt8(ascii: "<"): bytes += "&lt;".utf8
            case UInt8(ascii: ">"): bytes += "&gt;".utf8
            case UInt8(ascii: "\""): bytes += "&quot;".utf8
            case UInt8(ascii: "'"): bytes += "&#39;".utf8
            case _ where Self.isControl(byte): break
            default: bytes.append(byte)
            }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.contains(Self.firstOfNoncharacters) else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value | 1 != 0xFFFF }))
    }

    /// U+FFFE and U+FFFF begin with this byte in UTF-8.
    private static let firstOfNoncharacters: UInt8 = 0xEF

    private static func mustEscape(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"): true
        case firstOfNoncharacters: true
        default: isControl(byte)
        }
    }

    private static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D || byte == 0x7F
    }
}

/// Makes templates escape with ``Swift/String/escapedHTML``. The library's own escaper works on `Character`.
struct PageContentType: MustacheContentType {
    private static let name = "FANFARE"

    func escapeText(_ text: String) -> String { text.escapedHTML }

    /// Parses a template that escapes with this type. Each template declares the type, because the library falls back
    /// to its own escaper in every partial.
    static func template(_ text: String) throws -> MustacheTemplate {
        MustacheContentTypes.register(Self(), named: name)
        return try MustacheTemplate(string: "{{% CONTENT_TYPE:\(name)}}\n" + text)
    }
}
