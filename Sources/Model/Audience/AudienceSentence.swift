/// An audience in plain English, for people who do not read expressions: `German and Portuguese devices seen in the
/// last 30 days and tagged cycling, except segment beta`.
///
/// Only conjunctions of simple conditions have a sentence, and alternatives of simple conditions. A sentence never
/// leaves a condition out, so anything richer has none.
package struct AudienceSentence: Hashable, Sendable {
    package let text: String

    /// Returns `nil` for an expression that only its own text says well.
    package init?(_ expression: AudienceExpression) {
        if expression == .everyone {
            text = "every device of the app"
        } else if let phrases = AudiencePhrases(expression) {
            text = phrases.sentence
        } else {
            return nil
        }
    }
}

extension Campaign {
    /// The audience for a person: a sentence, or the text of the file if there is no sentence.
    package var audienceSummary: (sentence: String?, code: String?) {
        AudienceSentence.summary(of: audience.expression, source: audience.source, sql: audienceSQL)
    }
}

extension AudienceSentence {
    /// Returns an audience for a person: a sentence, or its text if there is no sentence.
    ///
    /// - Parameters:
    ///   - expression: `nil` for a text that is no expression.
    ///   - sql: the query that selects the devices in place of an expression.
    package static func summary(
        of expression: AudienceExpression?, source: String, sql: String?
    ) -> (sentence: String?, code: String?) {
        if let sql { return (nil, sql) }
        let sentence = expression.flatMap(AudienceSentence.init)?.text
        return (sentence, sentence == nil ? source : nil)
    }
}

/// The parts of a sentence about devices.
private struct AudiencePhrases {
    /// The names of languages in front of the word "devices".
    private var languages: [String] = []
    /// What is behind the word, in the order of the conditions.
    private var phrases: [String] = []
    /// The positions of the phrases that further conditions of their kind join.
    private var places: [String: Int] = [:]
    private var joined: [String: [String]] = [:]
    private var exceptions: [String] = []
    private var kinds: Set<String> = []

    init?(_ expression: AudienceExpression) {
        switch expression {
        case .all(let parts):
            guard !parts.isEmpty else { return nil }
            for part in parts {
                guard add(part) else { return nil }
            }
        case .any(let parts) where Self.list(parts) == nil:
            // The alternatives stand beside each other only if each is one phrase.
            let phrases = parts.compactMap(AudiencePhrases.init).compactMap(\.onePhrase)
            guard phrases.count == parts.count, !phrases.isEmpty else { return nil }
            self.phrases = [AudiencePhrases.or(phrases)]
        default:
            guard add(expression) else { return nil }
        }
    }

    /// The phrase behind the word "devices", if it is all there is.
    private var onePhrase: String? {
        languages.isEmpty && exceptions.isEmpty && phrases.count == 1 ? phrases[0] : nil
    }

    var sentence: String {
        let head = languages.isEmpty ? "devices" : "\(Self.and(languages)) devices"
        let isLong = phrases.contains(where: Self.isList)
        let body = phrases.isEmpty ? "" : " " + Self.joined(phrases, "and", hasComma: isLong)
        let names = exceptions.count == 1 ? "segment" : "segments"
        let tail = exceptions.isEmpty ? "" : ", except \(names) \(Self.and(exceptions))"
        let start = languages.isEmpty && phrases.isEmpty ? "all devices" : head
        return start + body + tail
    }

    // MARK: Conditions

    /// Adds a condition. Returns `false` if it has no phrase, or if its kind may stand only once.
    private mutating func add(_ part: AudienceExpression) -> Bool {
        switch part {
        case .all(let parts) where !parts.isEmpty: return parts.allSatisfy { add($0) }
        case .tag(let name): return join("tagged", Self.quoted(name), "and")
        case .segment(let name): return join("in segment", Self.quoted(name), "and segment")
        case .any(let parts):
            guard let (kind, names) = Self.list(parts) else { return false }
            return append(kind, "\(kind) \(Self.or(names))")
        case .not(let inner): return addNegated(inner)
        case .oneOf(.locale, let values): return addLanguages(values)
        default:
            guard let (kind, phrase) = Self.phrase(part, isNegated: false) else { return false }
            return append(kind, phrase)
        }
    }

    private mutating func addNegated(_ inner: AudienceExpression) -> Bool {
        switch inner {
        case .segment(let name):
            exceptions.append(Self.quoted(name))
            return true
        case .tag(let name): return join("not tagged", Self.quoted(name), "or")
        // Neither of them means not the one and not the other.
        case .any(let parts) where !parts.isEmpty: return parts.allSatisfy { addNegated($0) }
        case .not(let part): return add(part)
        default:
            guard let (kind, phrase) = Self.phrase(inner, isNegated: true) else { return false }
            return append(kind, phrase)
        }
    }

    private mutating func addLanguages(_ values: [AudienceValue]) -> Bool {
        guard let names = Self.names(.locale, values), kinds.insert("locale").inserted else { return false }
        languages = names
        return true
    }

    private mutating func append(_ kind: String, _ phrase: String) -> Bool {
        guard kinds.insert(kind).inserted else { return false }
        phrases.append(phrase)
        return true
    }

    /// Adds a name to the phrase of its kind: `tagged a and b`.
    private mutating func join(_ kind: String, _ name: String, _ word: String) -> Bool {
        guard let place = places[kind] else {
            guard kinds.insert(kind).inserted else { return false }
            places[kind] = phrases.count
            joined[kind] = [name]
            phrases.append("\(kind) \(name)")
            return true
        }
        joined[kind, default: []].append(name)
        phrases[place] = "\(kind) \(Self.joined(joined[kind, default: []], word))"
        return true
    }

    /// Returns the names of alternatives that are all tags or all segments.
    private static func list(_ parts: [AudienceExpression]) -> (kind: String, names: [String])? {
        let tags = parts.compactMap { if case .tag(let name) = $0 { quoted(name) } else { nil } }
        if tags.count == parts.count, !tags.isEmpty { return ("tagged", tags) }
        let segments = parts.compactMap { if case .segment(let name) = $0 { quoted(name) } else { nil } }
        return segments.count == parts.count && !segments.isEmpty ? ("in segment", segments) : nil
    }

    // MARK: Lists

    /// Whether a phrase names several things, so that a comma must separate it from the next phrase.
    private static func isList(_ phrase: String) -> Bool {
        let bare = phrase.replacingWord(" or later", with: "").replacingWord(" or earlier", with: "")
        return bare.holds(" or ") || bare.holds(" and ") || bare.holds(", ")
    }

    fileprivate static func quoted(_ name: String) -> String {
        name.isEmpty || name.contains { $0.isWhitespace || $0 == "," } ? "“\(name)”" : name
    }

    static func and(_ names: [String]) -> String { joined(names, "and") }

    static func or(_ names: [String]) -> String { joined(names, "or") }

    private static func joined(_ names: [String], _ word: String, hasComma: Bool = false) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + (hasComma ? ", " : " ") + "\(word) \(last)"
    }
}

/// The phrase of one condition on a field, behind the word "devices".
extension AudiencePhrases {
    /// Returns the phrase with its kind, of which a sentence has one; `nil` if the condition has no phrase.
    fileprivate static func phrase(
        _ part: AudienceExpression, isNegated: Bool
    ) -> (kind: String, phrase: String)? {
        let not = isNegated ? "not " : ""
        switch part {
        case .oneOf(let field, let values): return choice(field, values, isNegated)
        case .comparison(.locale, let comparison, let value):
            // In contrast to a list, which selects Austrian German too, this is the very tag.
            guard comparison == .equal, !isNegated, let names = names(.locale, [value]) else { return nil }
            return ("locale", "whose language is exactly \(names[0])")
        case .comparison(let field, .equal, let value): return choice(field, [value], isNegated)
        case .comparison(let field, .notEqual, let value) where !isNegated:
            // A device without the field is not selected, so the phrase says that the field is known.
            guard let (kind, phrase) = choice(field, [value], true), let name = noun(field) else { return nil }
            return (kind, "with a known \(name) and \(phrase)")
        case .within(.lastSeenAt, let duration):
            return span(duration).map { ("seen", "\(not)seen in the last \($0)") }
        case .within(.registeredAt, let duration):
            return span(duration).map { ("registered", "\(not)registered in the last \($0)") }
        case .comparison(let field, let comparison, let value) where !isNegated:
            return compared(field, comparison, value)
        case .between(let field, .version(let low), .version(let high)) where !isNegated:
            return noun(field).map { ("\(field.name)", "with \($0) \(low) to \(high)") }
        case .isNull(let field):
            guard let name = noun(field) else { return nil }
            return ("\(field.name) null", isNegated ? "with a known \(name)" : "without a known \(name)")
        default: return nil
        }
    }

    /// The condition that a field has one of some values.
    private static func choice(
        _ field: AudienceField, _ values: [AudienceValue], _ isNegated: Bool
    ) -> (kind: String, phrase: String)? {
        if field == .alertsAllowed, case .boolean(let truth)? = values.first, values.count == 1, !isNegated {
            return ("alerts", truth ? "that allow alerts" : "that do not allow alerts")
        }
        guard let names = names(field, values) else { return nil }
        let list = or(names)
        let phrase: String
        switch field {
        case .locale:
            guard isNegated else { return nil }
            phrase = "in languages other than \(and(names))"
        case .country: phrase = isNegated ? "outside \(and(names))" : "in \(list)"
        case .timeZone: phrase = isNegated ? "outside the time zone \(list)" : "in the time zone \(list)"
        case .environment: phrase = isNegated ? "outside \(list)" : "of \(list)"
        case .appVersion, .osVersion:
            guard let name = noun(field) else { return nil }
            phrase = "with \(isNegated ? "another \(name) than" : name) \(list)"
        case .model, .userID, .installationID, .attribute:
            guard let name = noun(field) else { return nil }
            phrase = "whose \(name) is \(isNegated ? "not " : "")\(list)"
        case .alertsAllowed, .registeredAt, .lastSeenAt, .badge: return nil
        }
        return (field.name, phrase)
    }

    private static func compared(
        _ field: AudienceField, _ comparison: ComparisonOperator, _ value: AudienceValue
    ) -> (kind: String, phrase: String)? {
        switch (field, value) {
        case (.appVersion, .version(let version)), (.osVersion, .version(let version)):
            guard let name = noun(field) else { return nil }
            let bound: String
            switch comparison {
            case .greaterOrEqual: bound = "\(version) or later"
            case .greater: bound = "later than \(version)"
            case .lessOrEqual: bound = "\(version) or earlier"
            case .less: bound = "earlier than \(version)"
            case .equal, .notEqual: return nil
            }
            return (field.name, "with \(name) \(bound)")
        case (.lastSeenAt, .time(let time)), (.registeredAt, .time(let time)):
            let verb = field == .lastSeenAt ? "last seen" : "registered"
            switch comparison {
            case .greater: return (field.name, "\(verb) after \(time.iso8601)")
            case .greaterOrEqual: return (field.name, "\(verb) since \(time.iso8601)")
            case .less: return (field.name, "\(verb) before \(time.iso8601)")
            case .lessOrEqual: return (field.name, "\(verb) until \(time.iso8601)")
            case .equal, .notEqual: return nil
            }
        default: return nil
        }
    }

    /// Returns the values as a person calls them; `nil` if one is of another kind than the field.
    private static func names(_ field: AudienceField, _ values: [AudienceValue]) -> [String]? {
        let names = values.compactMap { value -> String? in
            switch (field, value) {
            case (.locale, .locale(let tag)): EnglishNames.language(tag)
            case (.country, .text(let code)):
                (withArticle.contains(code.uppercased()) ? "the " : "") + EnglishNames.country(code)
            case (_, .text(let text)): quoted(text)
            case (_, .version(let version)): version.description
            default: nil
            }
        }
        return names.count == values.count && !names.isEmpty ? names : nil
    }

    /// The countries whose name has an article.
    private static let withArticle: Set<String> = [
        "AE", "BS", "CF", "DO", "GB", "GM", "MV", "NL", "PH", "SB", "SC", "US",
    ]

    private static func noun(_ field: AudienceField) -> String? {
        switch field {
        case .locale: "language"
        case .country: "country"
        case .timeZone: "time zone"
        case .appVersion: "app version"
        case .osVersion: "OS version"
        case .model: "model"
        case .userID: "user ID"
        case .installationID: "installation ID"
        case .attribute(let key): quoted(key)
        case .environment: "environment"
        case .registeredAt: "registration time"
        case .lastSeenAt: "time of the last visit"
        case .badge, .alertsAllowed: nil
        }
    }

    /// Returns `30 days` or `day`, as in "the last day"; `nil` for a length that no single unit says.
    private static func span(_ duration: Duration) -> String? {
        let seconds = duration.components.seconds
        guard duration.components.attoseconds == 0, seconds > 0 else { return nil }
        for (unit, length) in [("day", 86_400), ("hour", 3600), ("minute", 60)] as [(String, Int64)]
        where seconds % length == 0 {
            let count = seconds / length
            return count == 1 ? unit : "\(Int(count).grouped) \(unit)s"
        }
        return nil
    }
}
