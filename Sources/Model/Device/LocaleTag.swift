/// A BCP 47 language tag in its usual letter case (`de`, `pt-BR`, `zh-Hant-HK`), read with `_` and any case tolerated.
package struct LocaleTag: Hashable, Sendable, Codable, CustomStringConvertible {
    /// Subtags, language first, each in its usual case.
    package let subtags: [String]

    /// Nil for anything that is not a language of 2 to 8 letters followed by subtags of 1 to 8 letters or digits.
    /// A POSIX suffix (`de_DE.UTF-8`, `de_DE@euro`) is dropped.
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

    private init(subtags: [String]) {
        self.subtags = subtags
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

    /// The tag itself, then with fewer and fewer subtags: `zh-Hant-HK`, `zh-Hant`, `zh` (RFC 4647 section 3.4, lookup).
    /// A script that goes without saying may be said or not: `zh-TW`, `zh-Hant-TW`, `zh-Hant`, `zh`.
    package var fallbacks: [LocaleTag] {
        truncations.reduce(into: []) { tags, tag in
            for tag in [tag] + tag.sameInOtherWords(isWhole: subtags.count == 1) where !tags.contains(tag) {
                tags.append(tag)
            }
        }
    }

    /// - Parameter isWhole: it is not what is left of a longer tag, which may be in another script.
    private func sameInOtherWords(isWhole: Bool) -> [LocaleTag] {
        guard let scripts = LikelyScript.all[subtags[0]] else { return [] }
        switch subtags.count {
        case 1 where isWhole: return [LocaleTag(subtags: [subtags[0], scripts.usual])]
        case 2 where subtags[1].count < 4:
            let written = [subtags[0], scripts.script(in: subtags[1])]
            return [LocaleTag(subtags: written + [subtags[1]]), LocaleTag(subtags: written)]
        case 3 where scripts.script(in: subtags[2]) == subtags[1]:
            return [LocaleTag(subtags: [subtags[0], subtags[2]])]
        default: return []
        }
    }

    private var truncations: [LocaleTag] {
        var tags: [LocaleTag] = []
        var rest = subtags
        while !rest.isEmpty {
            tags.append(LocaleTag(subtags: rest))
            rest.removeLast()
            // RFC 4647: a single-letter subtag (an extension's start) goes together with what followed it.
            if rest.count > 1, rest[rest.count - 1].count == 1 { rest.removeLast() }
        }
        return tags
    }

    /// True when this tag, read as a basic language range, selects `tag`: `de` selects `de-AT`, `de-AT` not `de`.
    package func selects(_ tag: LocaleTag) -> Bool {
        tag.subtags.count >= subtags.count && zip(subtags, tag.subtags).allSatisfy { $0 == $1 }
    }

    private static func usualCase(of part: some StringProtocol, at index: Int) -> String {
        if index == 0 { return part.lowercased() }
        switch part.count {
        case 4 where part.allSatisfy(\.isLetter): return part.prefix(1).uppercased() + part.dropFirst().lowercased()
        case 2: return part.uppercased()
        default: return part.lowercased()
        }
    }
}

/// The script that a language is written in where its tag says none: of CLDR's likely subtags the languages whose readers
/// of one script cannot read the other.
private struct LikelyScript {
    let usual: String
    let byRegion: [String: String]

    func script(in region: String) -> String { byRegion[region] ?? usual }

    private init(_ usual: String, _ others: [String: [String]]) {
        self.usual = usual
        byRegion = others.reduce(into: [:]) { scripts, entry in
            for region in entry.value { scripts[region] = entry.key }
        }
    }

    static let all: [String: LikelyScript] = [
        "zh": .init(
            "Hans",
            [
                "Hant": [
                    "TW", "HK", "MO", "AU", "BN", "GB", "GF", "ID", "PA", "PF", "PH", "SR", "TH", "US", "VN",
                ]
            ]),
        "yue": .init("Hant", ["Hans": ["CN"]]),
        "sr": .init("Cyrl", ["Latn": ["ME", "RO", "RU", "TR"]]),
        "az": .init("Latn", ["Arab": ["IR", "IQ"], "Cyrl": ["RU"]]),
        "uz": .init("Latn", ["Arab": ["AF"], "Cyrl": ["CN"]]),
        "kk": .init("Cyrl", ["Arab": ["AF", "CN", "IR", "MN"]]),
        "ky": .init("Cyrl", ["Arab": ["CN"], "Latn": ["TR"]]),
        "tg": .init("Cyrl", ["Arab": ["PK"]]),
        "mn": .init("Cyrl", ["Mong": ["CN"]]),
        "pa": .init("Guru", ["Arab": ["PK"]]),
        "sd": .init("Arab", ["Deva": ["IN"]]),
        "bs": .init("Latn", [:]),
    ]
}
