/// A BCP 47 language tag in its usual letter case (`de`, `pt-BR`, `zh-Hant-HK`). Reading tolerates `_` and any case.
package struct LocaleTag: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The subtags, language first, each in its usual case.
    package let subtags: [String]

    /// Returns `nil` unless the text is a language of 2 to 8 letters followed by subtags of 1 to 8 letters or digits. A
    /// POSIX suffix (`de_DE.UTF-8`, `de_DE@euro`) is dropped.
    package init?(_ text: some StringProtocol) {
        let bare = text.prefix { $0 != "." && $0 != "@" }
        let parts = bare.split(separator: "-", omittingEmptySubsequences: false)
            .flatMap { $0.split(separator: "_", omittingEmptySubsequences: false) }
        guard let language = parts.first, (2...8).contains(language.count), parts.count <= 8 else { return nil }
        guard language.allSatisfy({ $0.isASCII && $0.isLetter }) else { return nil }
        for part in parts.dropFirst() {
            guard (1...8).contains(part.count), part.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else {
                return nil
            }
        }
        subtags = parts.enumerated().map { Self.usualCase(of: $1, at: $0) }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let tag = LocaleTag(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a BCP 47 tag: \(text)")
        }
        self = tag
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    package var description: String { subtags.joined(separator: "-") }

    private static func usualCase(of part: some StringProtocol, at index: Int) -> String {
        if index == 0 { return part.lowercased() }
        switch part.count {
        case 4 where part.allSatisfy(\.isLetter): return part.prefix(1).uppercased() + part.dropFirst().lowercased()
        case 2: return part.uppercased()
        default: return part.lowercased()
        }
    }
}
