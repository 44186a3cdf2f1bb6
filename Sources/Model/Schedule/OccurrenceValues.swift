/// The values of variables that a person gave for one start of a campaign's schedule.
package struct OccurrenceValues: Hashable, Sendable {
    package var campaign: String
    /// The key of the occurrence.
    package var occurrence: String
    package var startsAt: Timestamp
    package var variables: [String: String]
    package var givenAt: Timestamp
    /// The person's name.
    package var givenBy: String
    /// The person's account, see ``Actor/identity``.
    package var giver: String

    package init(
        campaign: String, occurrence: String, startsAt: Timestamp, variables: [String: String], givenAt: Timestamp,
        givenBy: String, giver: String
    ) {
        self.campaign = campaign
        self.occurrence = occurrence
        self.startsAt = startsAt
        self.variables = variables
        self.givenAt = givenAt
        self.givenBy = givenBy
        self.giver = giver
    }
}
