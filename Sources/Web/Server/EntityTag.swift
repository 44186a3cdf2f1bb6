import Model

/// Tells one text from another in a header (RFC 9110, section 8.8.3).
enum EntityTag {
    static func of(_ text: String) -> String { "\"\(word(Array(text.utf8)))\"" }

    /// FNV-1a in letters and digits.
    static func word(_ bytes: [UInt8]) -> String { String(FNV1a.hash(bytes: bytes.span), radix: 36) }
}
