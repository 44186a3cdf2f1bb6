package import Model

/// The only start of a campaign, which is over: nothing starts it any more.
package struct PastStart: Hashable, Sendable {
    package let occurrence: Occurrence
    private let zone: String

    /// `nil` for a campaign that may still start, or that never does.
    package init?(_ campaign: Campaign, now: Timestamp) {
        guard let schedule = campaign.schedule, let past = Timetable(schedule)?.past(at: now) else { return nil }
        occurrence = past
        zone = if case .named(let name)? = schedule.zone { name } else { "by each device's clock" }
    }

    /// `its only start, 2020-01-01 00:00 Europe/Berlin, is over`
    package var words: String {
        "its only start, \(occurrence.wall.description.replacing("T", with: " ")) \(zone), is over"
    }
}
