/// What is known of an access token; its secret is shown once, when it is made, and kept nowhere.
package struct AccessToken: Hashable, Sendable {
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

    package func isGood(at now: Timestamp) -> Bool {
        revokedAt == nil && expiresAt.map { now < $0 } ?? true
    }
}
