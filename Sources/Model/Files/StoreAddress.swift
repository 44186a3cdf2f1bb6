import Foundation

/// The location of a store, as in `store:` of the configuration. It is the path of a SQLite file, or the URL of a
/// PostgreSQL database, see ``PostgresAddress``.
///
/// A URL may contain a password. Show people and logs only the description.
package struct StoreAddress: Hashable, Sendable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// Whether the text is not a path: a URL of any kind, or libpq's keyword form, which may also contain a password.
    package var isURL: Bool {
        text.contains(/^(?i:postgres(ql)?:|[a-z][a-z0-9+.\-]*:\/\/|(host|hostaddr|dbname|user)=)/)
    }

    /// `nil` for a path, and for an invalid URL.
    package var postgres: PostgresAddress? { isURL ? try? PostgresAddress(text) : nil }

    /// Returns the URL with the paths in its options replaced. Returns a path unchanged.
    package func withFiles(_ other: (String) -> String) -> String {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard isURL, parts.count == 2 else { return text }
        let options = parts[1].split(separator: "&", omittingEmptySubsequences: false).map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2, PostgresOption(rawValue: String(sides[0]))?.isFile == true,
                let path = sides[1].removingPercentEncoding, other(path) != path,
                let written = other(path).addingPercentEncoding(withAllowedCharacters: Self.plain)
            else { return String(pair) }
            return "\(sides[0])=\(written)"
        }
        return "\(parts[0])?\(options.joined(separator: "&"))"
    }

    private static let plain = CharacterSet.alphanumerics.union(["/", "-", ".", "_", "~"])
}

extension StoreAddress: CustomStringConvertible, CustomReflectable {
    /// The path itself, or the URL without its password. An unreadable URL is not shown, because the password may be
    /// anywhere.
    package var description: String { isURL ? postgres?.description ?? "the store's URL" : text }

    package var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}
