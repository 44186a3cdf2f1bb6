/// Replaces possible device tokens, provider tokens, keys and ``AccessSecret``s in a text before it is recorded. The
/// last 8 characters remain, so that people can recognise them. Detection uses only the form of a text, because such a
/// long sequence of hex digits has no other likely meaning.
///
/// Each byte is read a bounded number of times. If a sequence of letters is no token, no later part of it is checked.
package enum Redaction {
    package static func withoutTokens(_ text: some StringProtocol) -> String {
        var scanner = TokenScanner(Array(text.utf8))
        return scanner.redacted()
    }

    /// Returns the beginning of a text, with at most this many Unicode scalars. One `Character` may be as long as the
    /// whole text.
    package static func beginning(of text: String, scalars most: Int) -> String {
        // Redact first: half a token would not be recognised.
        String(String.UnicodeScalarView(withoutTokens(text).unicodeScalars.prefix(most)))
    }
}

private struct TokenScanner {
    /// The minimum number of consecutive hex digits. `<`, `>` and blanks between them do not count.
    private static let hexDigitsMin = 32
    /// The minimum number of consecutive letters and digits, including both cases and digits: Base64 and similar.
    private static let lettersMin = 32
    private static let shown = 8
    /// The minimum number of characters after an access secret's prefix. Some characters may be missing.
    private static let secretMin = 32
    private static let secretPrefix = Array(AccessSecret.prefix.utf8)
    private static let blank = UInt8(ascii: " ")

    private let bytes: [UInt8]
    /// For each kind of token, the end of the last sequence that was found to be no such token.
    private var notHexBefore = 0
    private var notLettersBefore = 0
    private var notSecretBefore = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func redacted() -> String {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard let end = tokenEnd(from: index) else {
                result.append(bytes[index])
                index += 1
                continue
            }
            result += "…".utf8
            result += bytes[index..<end].filter { !Self.isFiller($0) }.suffix(Self.shown)
            index = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns the end of the token that begins here. `nil` if none does.
    private mutating func tokenEnd(from start: Int) -> Int? {
        secretEnd(from: start) ?? hexEnd(from: start) ?? lettersEnd(from: start)
    }

    private mutating func secretEnd(from start: Int) -> Int? {
        guard start >= notSecretBefore, bytes[start...].starts(with: Self.secretPrefix) else { return nil }
        let end = runEnd(from: start) { Self.isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
        if end - start >= Self.secretPrefix.count + Self.secretMin { return end }
        notSecretBefore = end
        return nil
    }

    private mutating func hexEnd(from start: Int) -> Int? {
        guard start >= notHexBefore, bytes[start] != Self.blank else { return nil }
        var end = runEnd(from: start) { Self.isHex($0) || Self.isFiller($0) }
        guard bytes[start..<end].count(where: Self.isHex) >= Self.hexDigitsMin else {
            notHexBefore = end
            return nil
        }
        while bytes[end - 1] == Self.blank { end -= 1 }
        return end
    }

    private mutating func lettersEnd(from start: Int) -> Int? {
        guard start >= notLettersBefore else { return nil }
        let end = runEnd(from: start) { Self.isLetterOrDigit($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "_") }
        let run = bytes[start..<end]
        if run.count >= Self.lettersMin, run.contains(where: { (0x41...0x5A).contains($0) }),
            run.contains(where: { (0x61...0x7A).contains($0) }), run.contains(where: { (0x30...0x39).contains($0) })
        {
            return end
        }
        notLettersBefore = end
        return nil
    }

    private func runEnd(from start: Int, while isPart: (UInt8) -> Bool) -> Int {
        var end = start
        while end < bytes.count, isPart(bytes[end]) { end += 1 }
        return end
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    private static func isFiller(_ byte: UInt8) -> Bool {
        byte == blank || byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">")
    }
}
