/// Somebody who has signed in to the pages.
package struct WebSession: Hashable, Sendable {
    package var name: String
    package var role: AccessRole
    /// Of the app they are confined to; nil: all.
    package var topic: String?
    package var expiresAt: Timestamp

    package init(name: String, role: AccessRole, topic: String?, expiresAt: Timestamp) {
        self.name = name
        self.role = role
        self.topic = topic
        self.expiresAt = expiresAt
    }
}
