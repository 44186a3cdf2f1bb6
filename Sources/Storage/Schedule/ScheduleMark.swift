package import Model

/// From when on somebody answers for a campaign's schedule. What it would have started before is not caught up: the file
/// was not there, or said something else.
package struct ScheduleMark: Hashable, Sendable {
    package var campaign: String
    /// Of the schedule as it was then; another one begins anew.
    package var scheduleHash: Int64
    package var since: Timestamp

    package init(campaign: String, scheduleHash: Int64, since: Timestamp) {
        self.campaign = campaign
        self.scheduleHash = scheduleHash
        self.since = since
    }
}
