/// The rules by which texts are checked before they are sent. A template's `lint: {allow: [...]}` lists rules by their
/// raw values, which never change.
package enum LintRule: String, Hashable, Sendable, Codable, CaseIterable {
    /// A title or body of fewer than three letters and digits.
    case shortText = "short-text"
    /// Words that are typical of a test push.
    case testWords = "test-words"
    /// Placeholder text of a designer's layout.
    case loremIpsum = "lorem-ipsum"
    /// A single repeated letter.
    case repetition
    /// The signs of an unfilled placeholder, or a value that programs write for a missing value.
    case unfilledPlaceholder = "unfilled-placeholder"
    /// A variable without a value in a campaign that its schedule starts. The only rule whose finding is an error.
    case neverFilled = "never-filled"
    /// Similar letters of two alphabets in one word.
    case mixedScripts = "mixed-scripts"
    /// An alert without an expiry, which Apple stores for as long as it chooses.
    case noExpiry = "no-expiry"
    /// A link that no server answers. It is checked only on request.
    case deadLink = "dead-link"
}

/// A text of a template that is allowed and probably a mistake.
package struct LintFinding: Hashable, Sendable, CustomStringConvertible {
    /// The position in the template.
    package struct Place: Hashable, Sendable {
        package var locale: LocaleTag
        /// `title`, `subtitle` or `body`.
        package var part: String
    }

    package var rule: LintRule
    package var place: Place
    /// The text and its problem.
    package var what: String
    package var advice: String

    package var description: String { "\(what); \(advice) [\(rule.rawValue)]" }
}

extension Template {
    /// Returns the probable mistakes in its texts, in order, without those that the template allows.
    ///
    /// - Parameter values: the values of the campaign's variables. An absent or empty value is not known yet and may be
    ///   anything.
    package func lint(_ values: [String: String]) -> [LintFinding] {
        guard case .localized(let blocks) = alert else { return [] }
        return blocks.flatMap { block in
            [("title", block.title), ("subtitle", block.subtitle), ("body", block.body)].flatMap { part, text in
                text.map { lint($0, LintFinding.Place(locale: block.locale, part: part), values) } ?? []
            }
        }
    }

    private func lint(_ text: TemplateText, _ place: LintFinding.Place, _ values: [String: String]) -> [LintFinding] {
        let lint = TextLint(text, values)
        let found = lint.found(isShortAllowed: place.part == "subtitle").filter { found in
            !allows(found.rule) && !(found.rule == .testWords && isTest == true)
        }
        return found.map { found in
            LintFinding(
                rule: found.rule, place: place, what: "the \(place.part) in \(place.locale) \(found.what)",
                advice: found.advice)
        }
    }

    /// Returns the addresses in its texts and custom keys, each once, in order. Addresses with unknown parts are left
    /// out.
    package func links(_ values: [String: String]) -> [String] {
        texts.flatMap { TextLint($0, values).links }.uniqued
    }

    /// Tells whether the template allows the findings of a rule.
    package func allows(_ rule: LintRule) -> Bool { lintAllowed?.contains(rule.rawValue) ?? false }
}

extension Array where Element: Hashable {
    /// The elements without repetitions, at their first positions.
    fileprivate var uniqued: [Element] {
        var seen: Set<Element> = []
        return filter { seen.insert($0).inserted }
    }
}

extension RunDefinition {
    /// Returns the probable mistakes in the texts as sent, of all variants, each once. The fields of devices are
    /// unknown here.
    package func lint() -> [LintFinding] {
        let others = variantTemplates.sorted { $0.key < $1.key }.map(\.value)
        let templates = campaign.variants.isEmpty ? [template] : others
        return templates.flatMap { $0.lint(variables) }.uniqued
    }

    /// Returns only the findings that are caused by values given at the start of the run. The other findings concern
    /// the files.
    package func lintOfValues() -> [LintFinding] {
        var written = self
        written.variables = campaign.variables
        let known = Set(written.lint())
        return lint().filter { !known.contains($0) }
    }
}

/// One text as a device would show it, for finding mistakes.
struct TextLint {
    struct Found {
        var rule: LintRule
        var what: String
        var advice: String
    }

    /// The placeholder for an unknown value. It is no letter, and no author writes it.
    private static let unknown: Character = "\u{FFFC}"
    private static let lettersMin = 3
    /// The maximum number of checked bytes of a text with its values filled in: many times the maximum payload.
    private static let shownBytesMax = 1 << 16
    /// The minimum length of a word that consists of one repeated letter.
    private static let repeatedWordMin = 5
    private static let repeatedMin = 9
    private static let testPhraseWordsMax = 5

    private static let testWords: Set<String> = [
        "test", "tests", "testing", "teste", "testen", "testowy", "testowa", "prueba", "essai", "prova", "тест",
        "тестовое", "тестирование", "δοκιμή", "اختبار", "asdf", "qwerty", "qwertz", "azerty", "fixme",
    ]
    /// Words that mean a test only in a text of at most two words.
    private static let testWordsAlone: Set<String> = ["probe", "xxx"]
    /// Words that give a preceding "test" an ordinary meaning, as in "test match".
    private static let wordsBehindTest: Set<String> = [
        "match", "matches", "cricket", "series", "drive", "drives", "flight", "flights",
    ]
    /// Notes that authors write in place of missing text: alone, in brackets, or before a colon.
    private static let noteWords = ["TODO", "TBD", "DRAFT", "XXX"]
    /// Names in single brackets that another program was meant to fill in.
    private static let placeholderNames: Set<String> = [
        "name", "first name", "firstname", "first_name", "last name", "lastname", "username", "user", "title", "city",
        "date", "time", "price", "amount", "product", "company", "link", "url", "vorname", "nachname", "prénom", "nom",
        "nombre", "nome",
    ]
    private static let testSigns = ["テスト", "测试", "測試", "테스트"]
    private static let testSignsLengthMax = 12
    /// Values that programs write for a missing value.
    private static let nothings: Set<String> = [
        "null", "nil", "undefined", "none", "nan", "[object object]", "(null)", "<null>", "optional(nil)",
    ]

    private let shown: String
    private let values: [String]

    init(_ text: TemplateText, _ known: [String: String]) {
        var values: [String] = []
        shown = text.parts.reduce(into: "") { shown, part in
            guard shown.utf8.count < Self.shownBytesMax else { return }
            switch part {
            case .literal(let literal): shown += literal
            case .variable(let name):
                let value = known[name, default: ""]
                if !value.isEmpty { values.append(value) }
                shown += value.isEmpty ? String(Self.unknown) : value
            case .device: shown.append(Self.unknown)
            }
        }
        self.values = values
    }

    func found(isShortAllowed: Bool) -> [Found] {
        let all = [isShortAllowed ? nil : short, test, lorem, repetition, unfilled, mixed]
        return all.compactMap(\.self)
    }

    var links: [String] {
        shown.split(whereSeparator: \.isWhitespace).map(String.init).filter {
            ($0.hasPrefix("https://") || $0.hasPrefix("http://")) && !$0.contains(Self.unknown)
        }
    }

    private var quotedShown: String {
        let text = shown.replacing(String(Self.unknown), with: "…")
        return text.count > 60 ? "\"\(text.prefix(60))…\"" : "\"\(text)\""
    }

    private var words: [Substring] { shown.split { !$0.isLetter && !$0.isNumber } }

    /// The finding if the text is too short. A letter of a script that writes words or syllables counts as a short
    /// word.
    private var short: Found? {
        guard !shown.contains(Self.unknown) else { return nil }
        let count = shown.reduce(0) { count, sign in
            count + (sign.isLetter || sign.isNumber ? (sign.writesWholeSyllables ? Self.lettersMin : 1) : 0)
        }
        guard count < Self.lettersMin else { return nil }
        return Found(
            rule: .shortText,
            what: "is \(quotedShown): \(count == 0 ? "no letter" : count == 1 ? "1 letter" : "\(count) letters")",
            advice: "under \(Self.lettersMin) letters is usually a mistake")
    }

    private var test: Found? {
        let words = words.map { $0.lowercased() }
        let isPhrase =
            words.count <= Self.testPhraseWordsMax && words.indices.contains { isTestWord(words, at: $0) }
        let isNote = Self.noteWords.contains { word in shown.isNote(word) }
        let isSigns = shown.count <= Self.testSignsLengthMax && Self.testSigns.contains { shown.contains($0) }
        let isSaid = zip(words, words.dropFirst()).enumerated().contains { index, pair in
            pair == ("a", "test") && index > 0 && words[index - 1] == "is"
        }
        guard isPhrase || isSigns || isSaid || isNote else { return nil }
        return Found(
            rule: .testWords, what: "says \(quotedShown), which looks like a test",
            advice: "write the final text, or send it with `fanfare test-send`")
    }

    private func isTestWord(_ words: [String], at index: Int) -> Bool {
        let word = words[index]
        if Self.testWords.contains(word) {
            return index + 1 == words.count || !Self.wordsBehindTest.contains(words[index + 1])
        }
        if Self.testWordsAlone.contains(word) { return words.count <= 2 }
        return word.hasPrefix("test") && word.count > 4 && word.dropFirst(4).allSatisfy(\.isWholeNumber)
    }

    private var lorem: Found? {
        let text = shown.lowercased()
        guard text.holds("lorem ipsum") || text.holds("dolor sit amet") else { return nil }
        return Found(rule: .loremIpsum, what: "is placeholder text (lorem ipsum)", advice: "write the real text")
    }

    private var repetition: Found? {
        for word in words where word.first?.isLetter == true && word.first?.writesWholeSyllables == false {
            var longest = 0
            var run = 0
            var last: Character?
            for letter in word.lowercased() {
                run = letter == last ? run + 1 : 1
                last = letter
                longest = max(longest, run)
            }
            guard longest >= Self.repeatedMin || longest >= Self.repeatedWordMin && longest == word.count else {
                continue
            }
            return Found(
                rule: .repetition, what: "repeats one letter \(longest) times, in \"\(word.prefix(20))\"",
                advice: "remove it, unless it is intended")
        }
        return nil
    }

    private var unfilled: Found? {
        if let sign = Self.openSign(in: shown) {
            return Found(
                rule: .unfilledPlaceholder,
                what: "still holds \"\(sign)\" after its variables are filled in: \(quotedShown)",
                advice: "write {{name}} for a variable, and give its value")
        }
        let written = ["undefined", "[object Object]", "(null)", "NaN"].first { shown.holds(word: $0) }
        guard let nothing = values.first(where: { Self.nothings.contains($0.lowercased()) }) ?? written else {
            return nil
        }
        return Found(
            rule: .unfilledPlaceholder, what: "would say \"\(nothing)\", which programs write for a missing value",
            advice: "check where the value comes from")
    }

    /// Returns an unfilled placeholder of Fanfare's or another program's, as the screen would show it.
    private static func openSign(in text: String) -> String? {
        for sign in ["{{", "}}", "${", "<%", "%@", "[["] where text.contains(sign) { return sign }
        if let name = bracketed(in: text).first(where: { placeholderNames.contains($0.lowercased()) }) {
            return "[\(name)]"
        }
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            rest = rest[rest.index(after: open)...]
            // No name contains a brace, so the search continues at the next one.
            guard let close = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) else { return nil }
            let name = rest[..<close]
            guard rest[close] == "}" else {
                rest = rest[close...]
                continue
            }
            rest = rest[rest.index(after: close)...]
            if TemplateText.isName(name) || !name.isEmpty && name.allSatisfy(\.isWholeNumber) { return "{\(name)}" }
        }
        return nil
    }

    /// Returns the texts within pairs of square brackets.
    private static func bracketed(in text: String) -> [Substring] {
        text.split(separator: "[", omittingEmptySubsequences: false).dropFirst().compactMap { part in
            part.firstIndex(of: "]").map { part[..<$0] }
        }
    }

    private var mixed: Found? {
        for word in shown.split(whereSeparator: { !$0.isLetter }) {
            let scripts = Set(word.unicodeScalars.compactMap(Alphabet.init))
            guard scripts.count > 1 else { continue }
            // A unit or a formula may contain a Greek letter that resembles no Latin one.
            let isLookalike =
                scripts.contains(.cyrillic) || word.unicodeScalars.contains(where: Alphabet.isLatinLookalike)
            guard isLookalike else { continue }
            let names = scripts.map(\.rawValue).sorted().joined(separator: " and ")
            return Found(
                rule: .mixedScripts, what: "has letters of \(names) in one word, \"\(word.prefix(40))\"",
                advice: "type the word again in one alphabet")
        }
        return nil
    }
}

/// An alphabet whose letters may be confused with those of another.
private enum Alphabet: String {
    case latin = "Latin", greek = "Greek", cyrillic = "Cyrillic"

    init?(_ scalar: Unicode.Scalar) {
        guard scalar.properties.isAlphabetic else { return nil }
        switch scalar.value {
        case 0x41...0x5A, 0x61...0x7A, 0xC0...0x24F, 0x1E00...0x1EFF: self = .latin
        case 0x370...0x3FF, 0x1F00...0x1FFF: self = .greek
        case 0x400...0x52F, 0x1C80...0x1C8F, 0x2DE0...0x2DFF, 0xA640...0xA69F: self = .cyrillic
        default: return nil
        }
    }

    /// Tells whether a Greek letter looks like a Latin one.
    static func isLatinLookalike(_ scalar: Unicode.Scalar) -> Bool {
        "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυ".unicodeScalars.contains(scalar)
    }
}

extension Character {
    /// Whether the character is Han, kana, Bopomofo or Hangul.
    fileprivate var writesWholeSyllables: Bool {
        guard let value = unicodeScalars.first?.value else { return false }
        switch value {
        case 0x3040...0x30FF, 0x3105...0x312F, 0x31F0...0x31FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xAC00...0xD7AF,
            0xF900...0xFAFF, 0xFF66...0xFF9D, 0x20000...0x3FFFF:
            return true
        default: return false
        }
    }
}

extension String {
    /// Tells whether the word occurs in the text as a whole word.
    fileprivate func holds(word: String) -> Bool { !wholePlaces(of: word).isEmpty }

    /// Tells whether the text contains the word as an author's note: alone, in brackets, or before a colon.
    fileprivate func isNote(_ word: String) -> Bool {
        wholePlaces(of: word).contains { place in
            let before = self[..<place.lowerBound].last { !$0.isWhitespace }
            let after = self[place.upperBound...].first { !$0.isWhitespace }
            let isBracketed = before.map { "[(<*".contains($0) } ?? false && after.map { "])>*".contains($0) } ?? false
            return before == nil && after == nil || after == ":" || isBracketed
        }
    }

    private func wholePlaces(of word: String) -> [Range<String.Index>] {
        places(of: word).filter { range in
            let before = range.lowerBound == startIndex ? nil : self[index(before: range.lowerBound)]
            let after = range.upperBound == endIndex ? nil : self[range.upperBound]
            return [before, after].allSatisfy { $0.map { !$0.isLetter && !$0.isNumber } ?? true }
        }
    }
}
