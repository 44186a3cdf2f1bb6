package import Model
import Store

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

extension RunLog {
    /// Returns the campaigns whose only start is over and has a run, as `campaign/occurrence`.
    func startedPast(_ campaigns: [Campaign], now: Timestamp) async throws -> Set<String> {
        var started: Set<String> = []
        for campaign in campaigns {
            guard let key = PastStart(campaign, now: now)?.occurrence.key,
                try await run(campaign: campaign.name, occurrence: key) != nil
            else { continue }
            started.insert("\(campaign.name)/\(key)")
        }
        return started
    }
}
