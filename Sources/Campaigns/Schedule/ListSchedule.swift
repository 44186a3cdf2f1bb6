package import Foundation
package import Model

/// Lists what starts by itself next, or rehearses a day.
package struct ListSchedule: Sendable {
    /// What starts when, in order.
    package struct Coming: Sendable {
        package var entries: [Agenda.Due]
        /// Runs that began and do not go on by themselves: late, or stopped by a breaker.
        package var halted: [Run] = []
        /// The operator's.
        package var zone: TimeZone
        package var now: Timestamp

        package var result: ScheduleResult { ScheduleResult(self) }
    }

    private let campaigns: [ReadyCampaign]
    private let zone: TimeZone

    package init(campaigns: [ReadyCampaign], zone: TimeZone) {
        self.campaigns = campaigns
        self.zone = zone
    }

    /// - Parameters:
    ///   - names: only these campaigns; none: all.
    ///   - count: occurrences of each campaign.
    ///   - day: everything that starts on this day instead; its midnight.
    package func coming(_ names: [String], count: Int, on day: WallTime?, now: Timestamp) throws -> Coming {
        let sorted = try chosen(names).flatMap { entries($0, count, day, now) }.sorted {
            ($0.occurrence.startsAt, $0.campaign.campaign.name) < ($1.occurrence.startsAt, $1.campaign.campaign.name)
        }
        return Coming(entries: sorted, zone: zone, now: now)
    }

    private func chosen(_ names: [String]) throws -> [ReadyCampaign] {
        guard !names.isEmpty else { return campaigns }
        return try names.map { name in
            if let found = campaigns.first(where: { $0.campaign.name == name }) { return found }
            let suggestion = Suggestion.nearest(to: name, among: campaigns.map(\.campaign.name))
            throw Failure(
                .notFound, "no campaign \"\(name)\"" + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
        }
    }

    private func entries(_ ready: ReadyCampaign, _ count: Int, _ day: WallTime?, _ now: Timestamp) -> [Agenda.Due] {
        guard let timetable = ready.timetable else { return [] }
        let found =
            day.map { occurrences(of: timetable, on: $0) }
            ?? timetable.occurrences(after: now, through: nil, atMost: count)
        return found.map { Agenda.Due(campaign: ready, occurrence: $0) }
    }

    /// By each device's clock, it is the day on that clock that counts.
    private func occurrences(of timetable: Timetable, on midnight: WallTime) -> [Occurrence] {
        let next = WallTime(seconds: midnight.seconds + 86_400)
        let isByEachClock = timetable.zone == .recipient
        let zone = isByEachClock ? TimeZone.gmt : self.zone
        let shift = isByEachClock ? Timetable.firstOffset : .zero
        let (start, end) = (zone.moment(of: midnight) - shift, zone.moment(of: next) - shift)
        return timetable.occurrences(after: start - .milliseconds(1), through: end - .milliseconds(1))
    }
}

/// The stable shape of `schedule --json`; keys are written in snake_case.
package struct ScheduleResult: Codable, Hashable, Sendable {
    package struct Entry: Codable, Hashable, Sendable {
        package var campaign: String
        /// Its key, for `run --occurrence`.
        package var occurrence: String
        /// ISO 8601, UTC.
        package var startsAt: String
        /// In the operator's zone.
        package var startsAtLocal: String
        /// When the last devices have their turn; the same as `starts_at` unless by each device's clock.
        package var lastStartsAt: String
        package var byEachClock: Bool
        /// Found after this it is not sent.
        package var missedAfter: String
        package var topic: String
        package var priority: Int
    }

    /// A run that waits for a person.
    package struct Halted: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var occurrence: String
        /// `late` or `breaker`.
        package var halt: String?
        package var stateReason: String?
    }

    package var zone: String
    package var now: String
    package var occurrences: [Entry]
    /// What began and goes on after `resume` alone; empty when a day is rehearsed.
    package var halted: [Halted]

    package init(_ coming: ListSchedule.Coming) {
        zone = coming.zone.identifier
        now = coming.now.iso8601
        occurrences = coming.entries.map { entry in
            Entry(
                campaign: entry.campaign.campaign.name, occurrence: entry.occurrence.key,
                startsAt: entry.occurrence.startsAt.iso8601,
                startsAtLocal: coming.zone.wall(at: entry.occurrence.startsAt).description,
                lastStartsAt: entry.occurrence.lastStartsAt.iso8601, byEachClock: entry.occurrence.isByEachClock,
                missedAfter: entry.occurrence.missedAfter.iso8601, topic: entry.campaign.campaign.topic,
                priority: entry.campaign.campaign.priority.rawValue)
        }
        halted = coming.halted.map { run in
            Halted(
                run: run.id, campaign: run.campaign, occurrence: run.occurrence, halt: run.halt?.rawValue,
                stateReason: run.stateReason)
        }
    }
}
