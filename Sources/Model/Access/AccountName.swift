import Foundation

/// What the name of an account is, and when two accounts are the same: the one rule for access tokens, `people`, authors of
/// git and users that a proxy names.
///
/// Two accounts are the same if the bytes of their ``canonical(_:)`` spellings are. Swift's `==` would also equate two
/// spellings of "é", which the store keeps as two names of two tokens.
package enum AccountName {
    /// The most characters of a token's name.
    package static let lengthMax = 64

    package static func isSame(_ one: String, _ other: String) -> Bool {
        canonical(one).utf8.elementsEqual(canonical(other).utf8)
    }

    /// Returns an account in the one spelling that is compared. Neither a mail address nor a proxy's name tells capital
    /// letters from small ones, and a mail address of git may be written in either normal form.
    package static func canonical(_ account: String) -> String {
        if account.hasPrefix("proxy:") { return account.lowercased() }
        return account.hasPrefix("git:") ? account.lowercased().precomposedStringWithCanonicalMapping : account
    }

    /// Tells whether a new access token may have the name: ASCII letters, digits and `. - _ @`, a letter first, so that no
    /// two names look the same, and none is an id.
    package static func isForToken(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...lengthMax).contains(bytes.count), let first = bytes.first, isLetter(first) else { return false }
        return bytes.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || ".-_@".utf8.contains($0) }
    }

    /// Tells whether a name that comes from elsewhere is written in one way only: Unicode's form NFC, without control
    /// characters and invisible signs.
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
