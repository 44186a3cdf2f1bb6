/// Cuts what may be a device token, a provider token, a key or an ``AccessSecret`` out of a text that goes on record, and leaves its last 8
/// characters, by which people know it. It goes by looks: nobody types that much hexadecimal for another reason.
package enum Redaction {
    /// So many hex digits on end, `<`, `>` and blanks between them not counted.
    private static let hexDigitsMin = 32
    /// So many letters and digits on end, both cases and digits among them: base64 and its like.
    private static let lettersMin = 32
    private static let shown = 8
    /// So many characters behind an access secret's prefix: some may be missing.
    private static let secretMin = 32

    package static func withoutTokens(_ text: some StringProtocol) -> String {
        var result = ""
        var rest = Substring(text)
        while let first = rest.first {
            let token = tokenPrefix(rest)
            result += token.isEmpty ? String(first) : "…" + token.filter { !isFiller($0) }.suffix(shown)
            rest = rest.dropFirst(max(1, token.count))
        }
        return result
    }

    /// The beginning of a text where it looks like a token; empty where it does not.
    private static func tokenPrefix(_ text: Substring) -> Substring {
        if let secret = secretPrefix(text) { return secret }
        var hex = text.prefix { isHex($0) || isFiller($0) }
        while hex.last == " " { hex = hex.dropLast() }
        if hex.first != " ", hex.count(where: isHex) >= hexDigitsMin { return hex }
        let letters = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "+" || $0 == "_") }
        let isMixed =
            letters.contains(where: \.isUppercase) && letters.contains(where: \.isLowercase)
            && letters.contains(where: \.isNumber)
        return isMixed && letters.count >= lettersMin ? letters : ""
    }

    private static func secretPrefix(_ text: Substring) -> Substring? {
        guard text.hasPrefix(AccessSecret.prefix) else { return nil }
        let secret = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
        return secret.count >= AccessSecret.prefix.count + secretMin ? secret : nil
    }

    private static func isHex(_ character: Character) -> Bool { character.isASCII && character.isHexDigit }

    private static func isFiller(_ character: Character) -> Bool { " <>".contains(character) }
}
