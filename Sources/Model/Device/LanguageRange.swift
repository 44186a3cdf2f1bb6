/// A language, with an optional script, region and further subtags. The rule below decides which text of a template a
/// device gets, and which devices `locale in (...)` selects.
///
/// A range is a normalised tag. Codes that are out of use are replaced (`iw` becomes `he`), and a range with a region
/// gets a script (`zh-TW` becomes `zh-Hant-TW`). A device understands, nearest first:
///
/// 1. its own tag, then with fewer subtags, down to the region: `zh-Hant-MO`;
/// 2. the regions whose texts its region is based on: `zh-Hant-HK`; `es-419` for `es-MX`, `pt-PT` for `pt-AO`;
/// 3. its language in its script, `zh-Hant`, then its language, `zh`;
/// 4. the same for another language that its readers also read: `no` for `nb` and `nn`, `nb` for `no`, `zh` for `yue`.
///
/// `LocaleCondition` of the stores computes the reverse: the device tags that a range selects. Both use
/// ``LanguageFacts`` as their only source.
package struct LanguageRange: Hashable, Sendable {
    package let language: String
    package let script: String?
    package let region: String?
    /// Variants, extensions and all other subtags.
    package let rest: [String]

    fileprivate init(_ language: String, _ script: String? = nil, _ region: String? = nil, rest: [String] = []) {
        self.language = language
        self.script = script
        self.region = region
        self.rest = rest
    }

    package init(_ tag: LocaleTag) {
        let parts = LanguageParts(tag)
        let isWide = parts.region == nil && parts.rest.isEmpty && parts.script == nil
        self.init(parts.language, isWide ? nil : parts.usualScript, parts.region, rest: parts.rest)
    }
}

extension LocaleTag {
    /// The ranges that the device with this tag understands, nearest first.
    package var understood: [LanguageRange] {
        let parts = LanguageParts(self)
        let languages = [parts.language] + [LanguageFacts.readAsWell[parts.language]].compactMap(\.self)
        return languages.reduce(into: []) { ranges, language in
            for range in Self.understood(parts, language) where !ranges.contains(range) { ranges.append(range) }
        }
    }

    private static func understood(_ parts: LanguageParts, _ language: String) -> [LanguageRange] {
        let script = parts.usualScript
        var ranges: [LanguageRange] = []
        for count in stride(from: parts.rest.count, to: 0, by: -1) {
            ranges.append(LanguageRange(language, script, parts.region, rest: Array(parts.rest.prefix(count))))
        }
        if let region = parts.region {
            ranges.append(LanguageRange(language, script, region))
            for parent in LanguageFacts.parents(of: region, in: language)
            where LanguageFacts.script(of: language, in: parent) == script {
                ranges.append(LanguageRange(language, script, parent))
            }
        }
        return ranges + [LanguageRange(language, script), LanguageRange(language)]
    }

    /// Tells whether this tag, read as a language range, selects a device with the given tag. `de` selects `de-AT`,
    /// `de-AT` does not select `de`, and `zh-Hant` selects `zh-TW`.
    package func selects(_ tag: LocaleTag) -> Bool {
        tag.understood.contains(LanguageRange(self))
    }

    /// Returns the index of the tag that stands for this tag's language in its script. If a language is written in
    /// several scripts, the main region of a script stands for the script, so `zh-TW` also serves `zh-HK`. In other
    /// languages no region stands for another one: `pt` never matches `pt-BR`.
    func standIn(among tags: [LocaleTag]) -> Int? {
        let parts = LanguageParts(self)
        guard let script = parts.usualScript, !LanguageFacts.regionsOfOtherScripts(parts.language).isEmpty,
            let first = LanguageFacts.firstRegion(of: parts.language, in: script)
        else { return nil }
        return tags.firstIndex { tag in
            let other = LanguageParts(tag)
            return other.language == parts.language && other.usualScript == script && other.region == first
        }
    }
}

/// The subtags of a tag by their meaning.
struct LanguageParts {
    /// The language's current code.
    let language: String
    let script: String?
    let region: String?
    /// Variants, extensions and all other subtags.
    let rest: [String]
    /// The script as written, or the usual script of the language. `nil` if unknown.
    let usualScript: String?

    init(_ tag: LocaleTag) {
        var rest = tag.subtags.dropFirst()
        let script = rest.first.flatMap { LanguageFacts.isScript($0) ? rest.removeFirst() : nil }
        let region = rest.first.flatMap { LanguageFacts.isRegion($0) ? rest.removeFirst() : nil }
        let written = tag.subtags[0]
        language = LanguageFacts.present(written)
        usualScript = script ?? LanguageFacts.script(of: written, in: region)
        self.script = script ?? (written == language ? nil : LanguageFacts.saidBy[written])
        self.region = region
        self.rest = Array(rest)
    }
}

/// Facts about languages: ``CLDRLanguages``, and the facts that CLDR states elsewhere or by whole locale names.
package enum LanguageFacts {
    /// A language that readers of another language also read, if no text in their own exists. The sources are CLDR's
    /// parents of `nb` and `nn`, its old alias of `no`, and its language matching of Cantonese. Cantonese is written
    /// like the Chinese of its script.
    static let readAsWell = ["nb": "no", "nn": "no", "no": "nb", "yue": "zh"]

    /// The scripts that codes out of use imply.
    static let saidBy = ["sh": "Latn"]

    private static let aliases = CLDRLanguages.aliases.merging(["sh": "sr"]) { $1 }
    private static let scripts = byWord(CLDRLanguages.languagesByScript)
    private static let regions = byWord(CLDRLanguages.languagesByRegion)
    private static let regionalScripts = CLDRLanguages.regionsByScript.mapValues(byWord)
    private static let regionalParents = CLDRLanguages.regionsByParent.mapValues(byWord)
    private static let codes: [String: [String]] = aliases.reduce(into: [:]) { codes, alias in
        codes[alias.value, default: []].append(alias.key)
    }

    private static func byWord(_ groups: [String: String]) -> [String: String] {
        groups.reduce(into: [:]) { all, group in
            for word in group.value.split(separator: " ") { all[String(word)] = group.key }
        }
    }

    /// Returns the current code of a language.
    static func present(_ code: String) -> String { aliases[code] ?? code }

    /// - Parameter code: a current or outdated code.
    package static func script(of code: String, in region: String?) -> String? {
        if let said = saidBy[code] { return said }
        let language = present(code)
        return region.flatMap { regionalScripts[language]?[$0] } ?? scripts[language]
    }

    /// Returns the regions in which a language is written in another script than elsewhere, each with that script.
    package static func regionsOfOtherScripts(_ code: String) -> [String: String] {
        saidBy[code] == nil ? regionalScripts[present(code)] ?? [:] : [:]
    }

    /// Returns the main region of a language in a script.
    static func firstRegion(of language: String, in script: String?) -> String? {
        script.flatMap { regions["\(language)-\($0)"] } ?? regions[language]
    }

    /// Returns the regions that a region's texts are based on, nearest first.
    static func parents(of region: String, in language: String) -> [String] {
        let parents = regionalParents[language] ?? [:]
        return Array(sequence(first: region) { parents[$0] }.dropFirst())
    }

    /// Returns the regions whose texts are based, directly or indirectly, on the texts of `region`.
    package static func followers(of region: String, in language: String) -> [String] {
        (regionalParents[language] ?? [:]).keys.filter { parents(of: $0, in: language).contains(region) }.sorted()
    }

    /// Returns the codes, current and outdated, of the languages whose readers understand a language.
    package static func readers(of language: String) -> [String] {
        let languages = [language] + readAsWell.filter { $0.value == language }.keys.sorted()
        return languages.flatMap { [$0] + (codes[$0] ?? []).sorted() }
    }

    package static func isScript(_ subtag: String) -> Bool {
        subtag.utf8.count == 4 && subtag.allSatisfy(\.isLetter)
    }

    package static func isRegion(_ subtag: String) -> Bool {
        subtag.utf8.count == 2 && subtag.allSatisfy(\.isLetter)
            || subtag.utf8.count == 3 && subtag.allSatisfy(\.isNumber)
    }
}
