/// A text for a campaign or template file, proposed by an account that may not start runs. The text replaces the file
/// once an account that may start runs releases it. Until then, no run uses it.
package struct PendingChange: Hashable, Sendable {
    /// The id of this text. A further edit of the same file is another change with another id.
    package var id: Int64
    /// `campaign` or `template`.
    package var kind: String
    /// The name of the file, without `.yaml`.
    package var name: String
    /// The text. Empty in a list of changes.
    package var text: String
    /// SHA-256 of the text in hex.
    package var hash: String
    /// The SHA-256 of the file's text that the author based the change on; `nil` for a new file.
    package var base: String?
    package var author: Actor
    package var askedAt: Timestamp

    package init(
        id: Int64 = 0, kind: String, name: String, text: String, hash: String, base: String?, author: Actor,
        askedAt: Timestamp
    ) {
        self.id = id
        self.kind = kind
        self.name = name
        self.text = text
        self.hash = hash
        self.base = base
        self.author = author
        self.askedAt = askedAt
    }
}
