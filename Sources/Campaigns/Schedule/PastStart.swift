package import Model
import Store

/// The only start of a campaign, once its time has come.
package struct PastStart: Hashable, Sendable {
    package let occurrence: Occurrence
    /// Whether the next daemon or `run --due` still starts it. Otherwise it is not started any more.
    package let isDue: Bool
    private let zone: String

    /// Returns `nil` for a campaign whose only start is still to come, and for a campaign with a recurring schedule
    /// or without a schedule.
    package init?(_ campaign: Campaign, now: Timestamp) {
        guard let schedule = campaign.schedule, let past = Timetable(schedule)?.past(at: now) else { return nil }
        occurrence = past
        isDue = now <= past.missedAfter && past.startsAt > now - Agenda.lookBackMax
        zone = if case .named(let name)? = schedule.zone { name } else { "by each device's clock" }
    }

    /// `its only start, 2020-01-01 00:00 Europe/Berlin, is over`
    package var summary: String {
        let state = isDue ? "is due now" : "is over"
        return "its only start, \(occurrence.wall.description.replacing("T", with: " ")) \(zone), \(state)"
    }
}

extension RunLog {
    /// Returns the campaigns whose only start is due or over and has a run, as `campaign/occurrence`.
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

    /// Returns the occurrences that have no run.
    func unstarted(_ due: [Agenda.Due]) async throws -> [Agenda.Due] {
        var known: [String: Set<String>] = [:]
        for (campaign, entries) in Dictionary(grouping: due, by: \.campaign.campaign.name) {
            known[campaign] = try await knownOccurrences(of: campaign, among: entries.map(\.occurrence.key))
        }
        return due.filter { known[$0.campaign.campaign.name]?.contains($0.occurrence.key) != true }
    }
}
