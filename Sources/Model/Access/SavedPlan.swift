/// A plan as a person saw it: what would be sent to whom, with the name of the send.
package struct SavedPlan: Hashable, Sendable {
    /// 0 until it is stored.
    package var id: Int64
    /// The name of the campaign's file.
    package var file: String
    /// The name of the send, or the occurrence of the campaign's schedule.
    package var occurrence: String
    /// Whether the campaign's schedule starts the occurrence.
    package var isScheduled: Bool
    /// The token that a start must match; `nil` while a variable has no value.
    package var token: String?
    /// The SHA-256 in hex that signatures on the plan cover.
    package var digest: String
    package var definition: RunDefinition
    /// What was shown, as JSON.
    package var shown: String
    package var madeAt: Timestamp
    /// The person's name.
    package var madeBy: String
    /// The person's account, see ``Actor/identity``.
    package var maker: String

    package init(
        id: Int64 = 0, file: String, occurrence: String, isScheduled: Bool, token: String?, digest: String,
        definition: RunDefinition, shown: String, madeAt: Timestamp, madeBy: String, maker: String
    ) {
        self.id = id
        self.file = file
        self.occurrence = occurrence
        self.isScheduled = isScheduled
        self.token = token
        self.digest = digest
        self.definition = definition
        self.shown = shown
        self.madeAt = madeAt
        self.madeBy = madeBy
        self.maker = maker
    }
}
