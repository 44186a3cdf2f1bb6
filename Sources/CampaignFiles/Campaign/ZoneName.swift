import Foundation
import Model

/// The names of time zones that a campaign file may have: those of the IANA time zone database.
///
/// Foundation also accepts other names, and reads them in its own way: `BST` as the time of Bangladesh, `AST` as that
/// of Alaska. A person means another zone by them.
enum ZoneName {
    /// The names of the database without a slash. It gets no new ones.
    private static let plain: Set<String> = [
        "UTC", "GMT", "UCT", "Universal", "Zulu", "Greenwich", "GMT0", "GMT+0", "GMT-0", "CET", "MET", "WET", "EET",
        "EST", "MST", "HST", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "Cuba", "Egypt", "Eire", "GB", "GB-Eire",
        "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya", "NZ", "NZ-CHAT", "Navajo",
        "PRC", "Poland", "Portugal", "ROC", "ROK", "Singapore", "Turkey", "W-SU",
    ]
    /// Abbreviations of several zones that are equally likely.
    private static let ambiguous: Set<String> = ["CST", "IST"]

    static func isKnown(_ text: String) -> Bool {
        guard TimeZone(identifier: text) != nil else { return false }
        return text.contains("/") ? !text.hasPrefix("SystemV/") : plain.contains(text)
    }

    /// Returns what is wrong with an unknown name, and what to write instead.
    ///
    /// - Parameter word: the word that may stand in place of a name.
    static func refusal(of text: String, or word: String) -> (what: String, advice: String) {
        let abbreviated = ambiguous.contains(text) ? nil : TimeZone.abbreviationDictionary[text]
        if let zone = TimeZone(identifier: text) {
            return (
                "\(quoted(text)) is not the IANA name of a time zone",
                abbreviated.map { "did you mean \(quoted($0))?" } ?? fixed(text, zone)
                    ?? "write a name such as Europe/Berlin"
            )
        }
        let nearest =
            abbreviated ?? Suggestion.nearest(to: text, among: [word, "UTC"] + TimeZone.knownTimeZoneIdentifiers)
        return (
            "no time zone is called \(quoted(text))",
            nearest.map { "did you mean \(quoted($0))?" } ?? "write \(word) or a name such as Europe/Berlin"
        )
    }

    /// Returns the advice for an offset of whole hours, such as `UTC+2`. The database writes it with the other sign.
    private static func fixed(_ text: String, _ zone: TimeZone) -> String? {
        let (hours, rest) = zone.secondsFromGMT().quotientAndRemainder(dividingBy: 3600)
        guard text.hasPrefix("UTC") || text.hasPrefix("GMT"), rest == 0, (-12...14).contains(hours) else { return nil }
        let name = hours == 0 ? "UTC" : "Etc/GMT\(hours > 0 ? "-" : "+")\(hours.magnitude)"
        return "write a name such as Europe/Berlin, or \(quoted(name)) for this offset all year"
    }
}
