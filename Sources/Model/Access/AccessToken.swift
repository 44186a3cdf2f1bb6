import Platform

/// The record of an access token. The token's secret is shown once, at creation, and is not stored.
package struct AccessToken: Hashable, Sendable {
    /// The prefix of the name of a token that belongs to one sign-in link. No other token's name begins with it.
    package static let linkPrefix = "terminal-"

    package var id: Int64
    /// The holder or the purpose, such as `anna` or `ios-backend`. The audit lists the token's actions under this
    /// name.
    package var name: String
    package var role: AccessRole
    /// The app that the token is valid for. `nil` for all apps.
    package var topic: String?
    package var createdAt: Timestamp
    package var createdBy: String
    /// `nil` if the token does not expire.
    package var expiresAt: Timestamp?
    package var revokedAt: Timestamp?
    /// Accurate to within some minutes. `nil` if the token was never used.
    package var lastUsedAt: Timestamp?
    /// Whether the record is an invitation that no person has accepted. Its secret only serves to accept it, until
    /// ``expiresAt``.
    package var isInvitation: Bool

    package init(
        id: Int64, name: String, role: AccessRole, topic: String?, createdAt: Timestamp, createdBy: String,
        expiresAt: Timestamp?, revokedAt: Timestamp?, lastUsedAt: Timestamp?, isInvitation: Bool = false
    ) {
        self.isInvitation = isInvitation
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

    /// Returns whether the token authenticates its holder. An invitation does not.
    package func isGood(at now: Timestamp) -> Bool { !isInvitation && isCurrent(at: now) }

    /// Returns whether the record is an invitation that a person may accept.
    package func isOpenInvitation(at now: Timestamp) -> Bool { isInvitation && isCurrent(at: now) }

    private func isCurrent(at now: Timestamp) -> Bool { revokedAt == nil && expiresAt.map { now < $0 } ?? true }
}

/// A signed-in session of a web page.
package struct WebSession: Hashable, Sendable {
    /// The holder's name. Name, role and topic come from the access token, or from the sign-in if it used no token.
    package var name: String
    package var role: AccessRole
    package var topic: String?
    /// `nil` if the person signed in without a token.
    package var token: Int64?
    package var createdAt: Timestamp
    /// Extended by use, up to ``endsAt``.
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

/// The secret of an access token or of a session: 32 random bytes in Base64 after a fixed prefix. The prefix lets
/// ``Redaction`` recognise a secret wherever it is pasted.
package enum AccessSecret {
    package static let prefix = "fanfare_"
    package static let byteCount = 32

    /// - Parameter bytes: ``byteCount`` random bytes.
    package static func text(_ bytes: [UInt8]) -> String {
        prefix + String(decoding: Base64URL.encode(bytes), as: UTF8.self)
    }

    /// Tells whether a text has the form of a secret. Any other text needs no look-up.
    package static func isPlausible(_ text: String) -> Bool {
        text.utf8.count == prefix.utf8.count + (byteCount * 8 + 5) / 6 && text.hasPrefix(prefix)
    }
}
