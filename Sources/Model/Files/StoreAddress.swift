import Foundation

/// Where a store is, as `store:` of the configuration says: the path of a SQLite file, or the URL of a database on
/// PostgreSQL, see ``PostgresAddress``.
///
/// A URL may hold a password: what people and logs are shown is the description.
package struct StoreAddress: Hashable, Sendable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// No path: a URL of whatever kind, or the words libpq takes in place of one, which may hold a password as well.
    package var isURL: Bool {
        text.contains(/^(?i:postgres(ql)?:|[a-z][a-z0-9+.\-]*:\/\/|(host|hostaddr|dbname|user)=)/)
    }

    /// Nil for a path, and for a URL that says nothing of use.
    package var postgres: PostgresAddress? { isURL ? try? PostgresAddress(text) : nil }

    /// The URL with other files in place of those that its options name; a path stays what it is.
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
    /// A path as it is, a URL without its password. One that cannot be read may have it anywhere.
    package var description: String { isURL ? postgres?.description ?? "the store's URL" : text }

    package var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}
