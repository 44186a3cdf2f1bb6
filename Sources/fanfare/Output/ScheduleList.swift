import Foundation
import Model
import Campaigns

/// What starts when, in the operator's zone and in UTC.
struct ScheduleList {
    private let entries: [Agenda.Due]
    private let zone: TimeZone
    private let now: Timestamp

    init(entries: [Agenda.Due], zone: TimeZone, now: Timestamp) {
        self.entries = entries.sorted {
            ($0.occurrence.startsAt, $0.campaign.campaign.name) < ($1.occurrence.startsAt, $1.campaign.campaign.name)
        }
        self.zone = zone
        self.now = now
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

    /// The stable shape of `schedule --json`; keys are written in snake_case.
    struct JSON: Encodable {
        struct Entry: Encodable {
            var campaign: String
            /// Its key, for `run --occurrence`.
            var occurrence: String
            /// ISO 8601, UTC.
            var startsAt: String
            /// In the operator's zone.
            var startsAtLocal: String
            /// When the last devices have their turn; the same as `starts_at` unless by each device's clock.
            var lastStartsAt: String
            var byEachClock: Bool
            /// Found after this it is not sent.
            var missedAfter: String
            var topic: String
            var priority: Int
        }

        var zone: String
        var now: String
        var occurrences: [Entry]
    }

    var json: JSON {
        JSON(
            zone: zone.identifier, now: now.iso8601,
            occurrences: entries.map { entry in
                JSON.Entry(
                    campaign: entry.campaign.campaign.name, occurrence: entry.occurrence.key,
                    startsAt: entry.occurrence.startsAt.iso8601,
                    startsAtLocal: zone.wall(at: entry.occurrence.startsAt).description,
                    lastStartsAt: entry.occurrence.lastStartsAt.iso8601, byEachClock: entry.occurrence.isByEachClock,
                    missedAfter: entry.occurrence.missedAfter.iso8601, topic: entry.campaign.campaign.topic,
                    priority: entry.campaign.campaign.priority.rawValue)
            })
    }
}
