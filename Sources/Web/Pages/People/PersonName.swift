import Foundation
import Model

/// The names of people and programs on pages. Records hold accounts and actors, such as `token:ann` and
/// `ann (signed in)`; a page shows `ann`.
enum PersonName {
    /// Returns a recorded account or actor as a page shows it. An account of the command line, of a timer or of git
    /// stays recognizable as one. Any other text is returned unchanged.
    static func shown(_ text: String) -> String {
        for (prefix, suffix) in prefixes where text.hasPrefix(prefix) && text.utf8.count > prefix.utf8.count {
            return String(text.dropFirst(prefix.count)) + suffix
        }
        for (ending, suffix) in endings where text.hasSuffix(ending) && text.utf8.count > ending.utf8.count {
            return String(text.dropLast(ending.count)) + suffix
        }
        if let place = text.places(of: " (uid ").last, place.lowerBound > text.startIndex,
            text[place.upperBound...].wholeMatch(of: /\d{1,10}\)/) != nil
        {
            return "\(text[..<place.lowerBound]) (command line)"
        }
        return text
    }

    /// Returns the account for a person's name as it is typed, such as `Marta.Kohler` for `Marta Köhler`. A name
    /// without a letter of an account stays as it is.
    static func account(for name: String) -> String {
        let plain = name.folding(options: .diacriticInsensitive, locale: nil)
        let parts = plain.split { !($0.isASCII && ($0.isLetter || $0.isNumber || "._-@".contains($0))) }
        return parts.isEmpty ? name : parts.joined(separator: ".")
    }

    private static let prefixes = [
        ("token:", ""), ("proxy:", ""), ("os:", " (command line)"), ("git:", " (git)"),
        ("ed25519:", " (signature file)"),
    ]

    /// A session and a proxy both mean the person at a page. A token in a request belongs to a program.
    private static let endings = [(" (signed in)", ""), (" (proxy)", ""), (" (token)", " (API)")]
}
