import Foundation
import Model

/// Converts a literal of an expression into a value of its field's type.
enum AudienceLiteral {
    struct Mistake: Error {
        var what: String
        var advice: String
    }

    static func value(of token: AudienceToken, for field: AudienceField) -> Result<AudienceValue, Mistake> {
        if let value = value(token.kind, field) { return .success(value) }
        return .failure(mistake(token, field))
    }

    private static func value(_ kind: AudienceToken.Kind, _ field: AudienceField) -> AudienceValue? {
        switch (field.kind, kind) {
        case (.text, .text(let text)):
            if field == .environment, PushEnvironment(rawValue: text) == nil { return nil }
            return .text(text)
        case (.locale, .text(let text)): return LocaleTag(text).map { .locale($0) }
        case (.version, .text(let text)), (.version, .number(let text)): return AppVersion(text).map { .version($0) }
        case (.boolean, .word("true")): return .boolean(true)
        case (.boolean, .word("false")): return .boolean(false)
        case (.time, .text(let text)): return ISOTime.parse(text).map { .time($0) }
        case (.number, .number(let text)): return Int32(text).map { .number(Double($0)) }
        default: return nil
        }
    }

    private static func mistake(_ token: AudienceToken, _ field: AudienceField) -> Mistake {
        if case .word(let word) = token.kind, field.kind != .boolean, field.kind != .number {
            return Mistake(
                what: "\(field.name) is \(field.kind.summary), found the word \(quoted(word))",
                advice: "put it in quotes: \"\(word)\"")
        }
        if field == .environment {
            return Mistake(
                what: "environment is production or sandbox, found \(token.found)",
                advice: "write \"production\" or \"sandbox\"")
        }
        return Mistake(
            what: "\(field.name) is \(field.kind.summary), found \(token.found)",
            advice: "write for example \(field.kind.example)")
    }
}

extension AudienceField.Kind {
    var summary: String {
        switch self {
        case .text: "a text"
        case .locale: "a language"
        case .version: "a version"
        case .boolean: "true or false"
        case .time: "a time"
        case .number: "a whole number"
        }
    }

    var example: String {
        switch self {
        case .text: "\"pro\""
        case .locale: "\"pt-BR\""
        case .version: "\"4.2\""
        case .boolean: "true"
        case .time: "\"2026-11-01\" or \"2026-11-01T09:00:00Z\""
        case .number: "3"
        }
    }

    /// The operators that a field of this type allows. Texts have no useful order ("10" comes before "9"). Stored
    /// times are in milliseconds, so a time that a person writes would almost never equal one.
    var allowed: [String] {
        switch self {
        case .text, .locale: ["=", "!=", "in", "is null"]
        case .boolean: ["=", "!=", "is null"]
        case .version, .number: ["=", "!=", "<", "<=", ">", ">=", "in", "between", "is null"]
        case .time: ["<", "<=", ">", ">=", "between", "within", "is null"]
        }
    }
}

/// The units of `within`.
enum AudienceSpan {
    /// The units, largest first.
    static let units: [(name: String, seconds: Int64)] = [
        ("week", 604_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1),
    ]

    static func seconds(in word: String) -> Int64? {
        let word = word.lowercased()
        return units.first { $0.name == word || $0.name + "s" == word }?.seconds
    }

    /// Returns the duration in the largest unit without a fraction, weeks excluded: `90 days`, `2 hours`.
    static func text(_ duration: Duration) -> String {
        let total = duration.components.seconds
        let unit = units.dropFirst().first { total % $0.seconds == 0 } ?? units[units.count - 1]
        let count = total / unit.seconds
        return "\(count) \(unit.name)\(count == 1 ? "" : "s")"
    }
}
