import Campaigns
import Foundation
import Model

/// What starts when, in the operator's zone and in UTC.
struct ScheduleList {
    private let entries: [Agenda.Due]
    private let zone: TimeZone

    init(_ coming: ListSchedule.Coming) {
        entries = coming.entries
        zone = coming.zone
    }

    var text: String {
        guard !entries.isEmpty else {
            return "nothing starts by itself; give a campaign a `schedule` with cron or at"
        }
        let shown = zone.identifier
        let width = max(20, shown.count) + 2
        let names = max(10, entries.map { $0.campaign.campaign.name.count }.max() ?? 0) + 2
        let heading = shown.padded(to: width) + "UTC".padded(to: 22) + "campaign".padded(to: names) + "occurrence"
        return ([heading] + entries.map { line($0, width: width, names: names) }).joined(separator: "\n")
    }

    private func line(_ entry: Agenda.Due, width: Int, names: Int) -> String {
        let occurrence = entry.occurrence
        let note =
            occurrence.isByEachClock ? " by each device's clock, the last at \(occurrence.lastStartsAt.iso8601)" : ""
        return zone.wall(at: occurrence.startsAt).description.padded(to: width)
            + occurrence.startsAt.iso8601.padded(to: 22) + entry.campaign.campaign.name.padded(to: names)
            + occurrence.key + note
    }

}
