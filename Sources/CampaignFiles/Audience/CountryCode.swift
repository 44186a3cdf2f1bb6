import Foundation
import Model

/// The codes of countries that a device may have.
enum CountryCode {
    /// Whether a device may have the text as its country: two letters of ISO 3166, or the three digits of an area.
    static func isWellFormed(_ text: some Collection<UInt8>) -> Bool {
        switch text.count {
        case 2: text.allSatisfy { (0x41...0x5A).contains($0 & 0xDF) }
        case 3: text.allSatisfy { (0x30...0x39).contains($0) }
        default: false
        }
    }

    /// Returns what is wrong with a country of an audience, and what to write; `nil` if devices may have it.
    static func doubt(_ text: String) -> (what: String, advice: String)? {
        let advice = EnglishNames.countryCode(named: text).map { "write its code \"\($0)\"" }
        guard isWellFormed(text.utf8) else {
            return (
                "no device has the country \(quoted(text)), because it is not a code of ISO 3166",
                advice ?? "write a code of two letters, such as \"DE\""
            )
        }
        guard text.utf8.count == 2, EnglishNames.country(text) == text else { return nil }
        return ("the country \(quoted(text)) is not a known code of ISO 3166", "check the code, such as \"DE\"")
    }
}

extension AudienceExpression {
    /// Returns the first values that no device has, or probably none, each once and in order.
    func doubts(atMost max: Int) -> [(value: String, what: String, advice: String)] {
        var doubts: [(value: String, what: String, advice: String)] = []
        for (field, text) in texts where !doubts.contains(where: { $0.value == text }) {
            guard doubts.count < max else { break }
            let doubt: (what: String, advice: String)? =
                switch field {
                case .country: CountryCode.doubt(text)
                case .timeZone where TimeZone(identifier: text) == nil:
                    (
                        "the time zone \(quoted(text)) is not a known IANA name",
                        "check the name, such as \"Europe/Berlin\""
                    )
                default: nil
                }
            if let doubt { doubts.append((text, doubt.what, doubt.advice)) }
        }
        return doubts
    }

    /// The texts of the expression with their fields.
    private var texts: [(field: AudienceField, text: String)] {
        func texts(_ field: AudienceField, _ values: [AudienceValue]) -> [(AudienceField, String)] {
            values.compactMap { value in
                guard case .text(let text) = value else { return nil }
                return (field, text)
            }
        }
        switch self {
        case .all(let parts), .any(let parts): return parts.flatMap(\.texts)
        case .not(let part): return part.texts
        case .comparison(let field, _, let value): return texts(field, [value])
        case .between(let field, let low, let high): return texts(field, [low, high])
        case .oneOf(let field, let values): return texts(field, values)
        case .everyone, .isNull, .within, .segment, .tag: return []
        }
    }
}
