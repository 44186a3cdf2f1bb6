package import Model

/// The stored device locales that a language range selects: the reverse of ``Model/LocaleTag/understood``, in terms
/// that every database can compare. A language with several scripts or codes needs several conditions.
package struct LocaleCondition: Hashable, Sendable {
    /// Every selected locale equals this language, or begins with it and a hyphen.
    package var language: String
    /// A locale is selected if it equals one of these, or begins with one and a hyphen.
    package var prefixes: [String]
    /// A locale is not selected if it equals one of these, or begins with one and a hyphen.
    package var exceptions: [String] = []
    /// Whether locales that name a script after the language are excluded.
    package var isWithoutScripts = false

    /// Whether the condition is just that a locale begins with its language.
    package var isPlain: Bool { prefixes == [language] && exceptions.isEmpty && !isWithoutScripts }

    /// The number of values that the condition needs in a statement.
    var operands: Int { 1 + prefixes.count + exceptions.count }

    /// Returns the conditions for a tag. A locale is selected if it meets any of them.
    package static func conditions(for tag: LocaleTag) -> [LocaleCondition] {
        let range = LanguageRange(tag)
        return LanguageFacts.readers(of: range.language).flatMap { conditions(for: range, among: $0) }
    }

    /// - Parameter code: a language code of devices whose users read the range's language.
    private static func conditions(for range: LanguageRange, among code: String) -> [LocaleCondition] {
        guard range.region != nil || range.script != nil || !range.rest.isEmpty else {
            return [LocaleCondition(language: code, prefixes: [code])]
        }
        guard range.region != nil || !range.rest.isEmpty else { return inScript(range.script ?? "", among: code) }
        let regions = [range.region] + followers(of: range)
        let prefixes = regions.flatMap { region in
            let said = [code, range.script, region] + (region == range.region ? range.rest : [])
            let unsaid = [code, region] + (region == range.region ? range.rest : [])
            let isUsual = range.script != nil && LanguageFacts.script(of: code, in: region) == range.script
            return (isUsual ? [said, unsaid] : [said]).map { $0.compactMap(\.self).joined(separator: "-") }
        }
        return [LocaleCondition(language: code, prefixes: prefixes)]
    }

    private static func followers(of range: LanguageRange) -> [String?] {
        guard let region = range.region, range.rest.isEmpty,
            LanguageFacts.script(of: range.language, in: region) == range.script
        else { return [] }
        return LanguageFacts.followers(of: region, in: range.language)
    }

    /// Returns the conditions for a script. Devices omit the script from a locale if it is the usual one for the
    /// language, or for the language in that region.
    private static func inScript(_ script: String, among code: String) -> [LocaleCondition] {
        let others = LanguageFacts.regionsOfOtherScripts(code)
        var said = LocaleCondition(language: code, prefixes: ["\(code)-\(script)"])
        guard LanguageFacts.script(of: code, in: nil) == script else {
            said.prefixes += others.filter { $0.value == script }.keys.sorted().map { "\(code)-\($0)" }
            return [said]
        }
        let unsaid = LocaleCondition(
            language: code, prefixes: [code], exceptions: others.keys.sorted().map { "\(code)-\($0)" },
            isWithoutScripts: true)
        return [said, unsaid]
    }
}
