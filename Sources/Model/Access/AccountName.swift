import Foundation

/// The rules for account names and for when two accounts are the same. They apply to access tokens, `people`, git
/// authors and the users that a proxy names.
///
/// Two accounts are the same if the bytes of their ``canonical(_:)`` spellings are. Swift's `==` would also equate two
/// spellings of "é", which the store keeps as two names of two tokens.
package enum AccountName {
    /// The maximum number of characters in a token's name.
    package static let lengthMax = 64

    package static func isSame(_ one: String, _ other: String) -> Bool {
        canonical(one).utf8.elementsEqual(canonical(other).utf8)
    }

    /// Returns an account in its canonical spelling, which comparisons use. Mail addresses and proxy names are not
    /// case-sensitive. A mail address from git may be in either Unicode normal form.
    package static func canonical(_ account: String) -> String {
        if account.hasPrefix("proxy:") { return account.lowercased() }
        return account.hasPrefix("git:") ? account.lowercased().precomposedStringWithCanonicalMapping : account
    }

    /// Tells whether a new access token may have the name: ASCII letters, digits and `. - _ @`, starting with a letter.
    /// These limits ensure that no two names look the same, and that no name looks like an id.
    package static func isForToken(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...lengthMax).contains(bytes.count), let first = bytes.first, isLetter(first) else { return false }
        return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || ".-_@".utf8.contains($0) }
    }

    /// Tells whether an external name has only one spelling: Unicode's form NFC, without control characters and
    /// invisible signs.
    package static func isPlain(_ name: String) -> Bool {
        name.utf8.elementsEqual(name.precomposedStringWithCanonicalMapping.utf8)
            && name.unicodeScalars.allSatisfy {
                ![.control, .format, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator]
                    .contains($0.properties.generalCategory)
            }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
}
