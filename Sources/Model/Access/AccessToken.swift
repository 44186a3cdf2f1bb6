/// What is known of an access token; its secret is shown once, when it is made, and kept nowhere.
package struct AccessToken: Hashable, Sendable {
    /// The name of a token that belongs to one sign-in link begins with it, and no other token's name does.
    package static let linkPrefix = "terminal-"

    package var id: Int64
    /// Whose it is or what for, `anna` or `ios-backend`: the name of what is done with it in the audit.
    package var name: String
    package var role: AccessRole
    /// Of the app it is good for; nil: all of them.
    package var topic: String?
    package var createdAt: Timestamp
    package var createdBy: String
    /// Nil: it does not end by itself.
    package var expiresAt: Timestamp?
    package var revokedAt: Timestamp?
    /// To within some minutes; nil: it was never used.
    package var lastUsedAt: Timestamp?

    package init(
        id: Int64, name: String, role: AccessRole, topic: String?, createdAt: Timestamp, createdBy: String,
        expiresAt: Timestamp?, revokedAt: Timestamp?, lastUsedAt: Timestamp?
    ) {
        self.id = id
        self.name = name
        self.role = role
        self.topic = topic
        self.createdAt = createdAt
        self.createdBy = createdBy
        self.expiresAt = expiresAt
        self.revokedAt = revokedAt
        self.lastUsedAt = lastUsedAt
    }

    /// The name by which `people` may know its holder; `nil` for a token of a sign-in link.
    package var nameOfHolder: String? { name.hasPrefix(Self.linkPrefix) ? nil : name }

    package func isGood(at now: Timestamp) -> Bool {
        revokedAt == nil && expiresAt.map { now < $0 } ?? true
    }
}

/// Somebody signed in at a web page.
package struct WebSession: Hashable, Sendable {
    /// Whose it is, and what they may do: as the access token had it, or as whoever let them in without one said.
    package var name: String
    package var role: AccessRole
    package var topic: String?
    /// Nil: whoever it is came without a token.
    package var token: Int64?
    package var createdAt: Timestamp
    /// Put off by use, to ``endsAt`` at most.
    package var expiresAt: Timestamp
    package var endsAt: Timestamp

    package init(
        name: String, role: AccessRole, topic: String?, token: Int64?, createdAt: Timestamp, expiresAt: Timestamp,
        endsAt: Timestamp
    ) {
        self.name = name
        self.role = role
        self.topic = topic
        self.token = token
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.endsAt = endsAt
    }

    package func isGood(at now: Timestamp) -> Bool { now < expiresAt }
}

/// What the holder of an access token, or of a session, shows: 32 bytes by chance behind a word that tells a secret from
/// everything else, so that ``Redaction`` knows it wherever somebody pastes it.
package enum AccessSecret {
    package static let prefix = "fanfare_"
    package static let byteCount = 32

    /// - Parameter bytes: ``byteCount`` of them, by chance.
    package static func text(_ bytes: [UInt8]) -> String { prefix + base64URL(bytes) }

    /// Anything else is nobody's secret, and need not be looked up.
    package static func isPlausible(_ text: String) -> Bool {
        text.utf8.count == prefix.utf8.count + (byteCount * 8 + 5) / 6 && text.hasPrefix(prefix)
    }

    /// RFC 4648 section 5, without padding.
    private static func base64URL(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var (bits, count, text) = (0, 0, "")
        for byte in bytes {
            (bits, count) = (bits << 8 | Int(byte), count + 8)
            while count >= 6 {
                count -= 6
                text.append(alphabet[bits >> count & 63])
            }
            bits &= 1 << count - 1
        }
        if count > 0 { text.append(alphabet[bits << (6 - count) & 63]) }
        return text
    }
}
