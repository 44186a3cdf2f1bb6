import Model

/// Entity tags, which identify the version of a text in HTTP headers (RFC 9110, section 8.8.3).
enum EntityTag {
    static func of(_ text: String) -> String { "\"\(word(Array(text.utf8)))\"" }

    /// Returns the FNV-1a hash in base 36: letters and digits.
    static func word(_ bytes: [UInt8]) -> String { String(FNV1a.hash(bytes: bytes.span), radix: 36) }
}
