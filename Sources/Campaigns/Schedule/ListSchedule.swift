package import Foundation
package import Model
package import Store

/// Lists the next automatic starts, or all automatic starts of given days.
package struct ListSchedule: Sendable {
    /// The coming occurrences, in order.
    package struct Coming: Sendable {
        package var entries: [Agenda.Due]
        /// The occurrences that the next daemon or `run --due` starts immediately, in order.
        package var due: [Agenda.Due] = []
        /// The number of requested campaigns that have a schedule.
        package var scheduled = 0
        /// Whether a campaign has more occurrences than the first ``ListSchedule/occurrencesMax``, which are listed.
        package var isCut = false
        /// Runs that paused themselves and wait for a person, see ``RunHalt/waitsForPerson``.
        package var halted: [Run] = []
        /// Campaigns whose only start is over, as `spring: its only start, 2020-01-01 00:00 Europe/Berlin, is over`.
        package var past: [String] = []
        /// The values that people gave for the starts.
        package var values = StartValues()
        /// The operator's time zone.
        package var zone: TimeZone
        package var now: Timestamp

        package var result: ScheduleResult { ScheduleResult(self) }
    }

    /// The maximum number of occurrences of one campaign in a list of several days.
    package static let occurrencesMax = 1000
    /// The maximum number of days in one list.
    package static let daysMax: Int64 = 62

    private let campaigns: [ReadyCampaign]
    private let zone: TimeZone

    package init(campaigns: [ReadyCampaign], zone: TimeZone) {
        self.campaigns = campaigns
        self.zone = zone
    }

    /// - Parameters:
    ///   - names: only these campaigns; empty for all campaigns.
    ///   - count: the number of occurrences of each campaign.
    ///   - day: the midnight of a day, to list everything that starts on that day instead.
    package func coming(_ names: [String], count: Int, on day: WallTime?, now: Timestamp) throws -> Coming {
        let sorted = try chosen(names).flatMap { entries($0, count, day, now) }.sorted {
            ($0.occurrence.startsAt, $0.campaign.campaign.name) < ($1.occurrence.startsAt, $1.campaign.campaign.name)
        }
        var coming = Coming(entries: sorted, zone: zone, now: now)
        coming.scheduled = try chosen(names).count { $0.timetable != nil }
        guard day == nil else { return coming }
        coming.past = try chosen(names).compactMap { ready in
            guard let past = PastStart(ready.campaign, now: now), !past.isDue else { return nil }
            return "\(ready.campaign.name): \(past.summary)"
        }
        return coming
    }

    /// Returns the occurrences that the next daemon or `run --due` starts immediately: due now, and without a run.
    package func due(_ names: [String], in store: any DaemonLog & RunLog, now: Timestamp) async throws -> [Agenda.Due] {
        try await store.unstarted(due(names, marks: store.scheduleMarks(), now: now))
    }

    /// Returns the occurrences that are due now and not yet missed, whether they have a run or not.
    ///
    /// - Parameter marks: the marks by campaign. A schedule without a mark is treated as new, as in ``Agenda``.
    package func due(_ names: [String], marks: [String: ScheduleMark], now: Timestamp) throws -> [Agenda.Due] {
        var agenda = Agenda()
        _ = agenda.update(try chosen(names), marks: marks, now: now)
        return agenda.due(at: now).filter { now <= $0.occurrence.missedAfter }
    }

    /// Returns everything that starts from one day through another. The days are those of the operator's zone, or of
    /// each device's clock if the schedule follows it.
    package func coming(_ names: [String], from first: CivilDay, through last: CivilDay, now: Timestamp) throws
        -> Coming
    {
        guard first <= last, last.number - first.number < Self.daysMax else {
            throw Failure(
                .invalidData,
                "the schedule is listed for 1 to \(Self.daysMax) days at a time; the last day must not be before the "
                    + "first"
            )
        }
        var coming = Coming(entries: [], zone: zone, now: now)
        for ready in try chosen(names) {
            guard let timetable = ready.timetable else { continue }
            let found = occurrences(
                of: timetable, from: WallTime(first), to: WallTime(CivilDay(number: last.number + 1)),
                atMost: Self.occurrencesMax + 1)
            coming.isCut = coming.isCut || found.count > Self.occurrencesMax
            coming.entries += found.prefix(Self.occurrencesMax).map { Agenda.Due(campaign: ready, occurrence: $0) }
        }
        coming.entries.sort {
            ($0.occurrence.startsAt, $0.campaign.campaign.name) < ($1.occurrence.startsAt, $1.campaign.campaign.name)
        }
        return coming
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

    /// Returns the occurrences of a day. If the schedule follows each device's clock, the day on that clock counts.
    private func occurrences(of timetable: Timetable, on midnight: WallTime) -> [Occurrence] {
        occurrences(of: timetable, from: midnight, to: WallTime(seconds: midnight.seconds + 86_400))
    }

    private func occurrences(
        of timetable: Timetable, from start: WallTime, to end: WallTime, atMost limit: Int = .max
    ) -> [Occurrence] {
        let isByEachClock = timetable.zone == .recipient
        let zone = isByEachClock ? TimeZone.gmt : self.zone
        let shift = isByEachClock ? Timetable.firstOffset : .zero
        let (first, last) = (zone.moment(of: start) - shift, zone.moment(of: end) - shift)
        return timetable.occurrences(
            after: first - .milliseconds(1), through: last - .milliseconds(1), atMost: limit)
    }
}

/// The stable shape of `schedule --json`; keys are written in snake_case.
package struct ScheduleResult: Codable, Hashable, Sendable {
    package struct Entry: Codable, Hashable, Sendable {
        package var campaign: String
        /// The key of the occurrence, for `run --occurrence`.
        package var occurrence: String
        /// ISO 8601, UTC.
        package var startsAt: String
        /// In the operator's zone.
        package var startsAtLocal: String
        /// When the last devices are due; the same as `starts_at` unless the schedule follows each device's clock.
        package var lastStartsAt: String
        package var byEachClock: Bool
        /// An occurrence found after this time is not sent.
        package var missedAfter: String
        package var topic: String
        package var priority: Int
        /// The zone of the clock: an IANA name, or `recipient` for each device's clock.
        package var zone: String
        /// The zones whose clock skips the time or shows it twice; absent if none is known.
        package var clockChanges: [ClockChangeEntry]?
        /// The variables without a value, because of which the run will fail; absent if there are none.
        package var missingValues: [String]?
        /// The values that a person gave for this occurrence; absent if there are none.
        package var values: [String: String]?
    }

    /// The effect of a clock change on an occurrence.
    package struct ClockChangeEntry: Codable, Hashable, Sendable {
        /// One of the zones with the same rule.
        package var zone: String
        /// `skipped` if the clock is put forward over the time; the occurrence starts at that moment. `twice` if the
        /// clock is put back and shows the time again; the occurrence starts the first time.
        package var kind: String
        /// The time that the clock in the zone shows then.
        package var startsAtLocal: String
    }

    /// A run that waits for a person.
    package struct Halted: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var occurrence: String
        /// The cause of the pause, as in ``RunResult``.
        package var halt: String?
        package var stateReason: String?
    }

    package var zone: String
    package var now: String
    package var occurrences: [Entry]
    /// The runs that paused themselves and wait for a person; empty in a list of given days.
    package var halted: [Halted]
    /// `true` if only the first occurrences of a campaign are listed; absent otherwise.
    package var truncated: Bool?
    /// The occurrences that the next daemon or `run --due` starts immediately; absent if there are none.
    package var due: [Entry]?

    package init(_ coming: ListSchedule.Coming) {
        zone = coming.zone.identifier
        now = coming.now.iso8601
        occurrences = coming.entries.map { Entry($0, coming.values, zone: coming.zone) }
        let dueNow = coming.due.map { Entry($0, coming.values, zone: coming.zone) }
        due = dueNow.isEmpty ? nil : dueNow
        truncated = coming.isCut ? true : nil
        halted = coming.halted.map { run in
            Halted(
                run: run.id, campaign: run.campaign, occurrence: run.occurrence, halt: run.halt?.rawValue,
                stateReason: run.stateReason)
        }
    }
}

extension ScheduleResult.Entry {
    init(_ due: Agenda.Due, _ values: StartValues, zone: TimeZone) {
        self.init(
            due.campaign.campaign, due.occurrence, due.campaign.timetable,
            missing: due.campaign.missingValues(at: due.occurrence, values),
            values: values.values(of: due.campaign.campaign, due.occurrence), zone: zone)
    }

    /// - Parameters:
    ///   - missing: the variables without a value.
    ///   - values: the values that a person gave for the occurrence.
    ///   - local: the operator's zone.
    init(
        _ campaign: Campaign, _ occurrence: Occurrence, _ timetable: Timetable?, missing: [String],
        values: [String: String], zone local: TimeZone
    ) {
        let changes = timetable?.clockChanges(at: occurrence) ?? []
        let zone: String =
            switch timetable?.zone {
            case .fixed(let zone): zone.identifier
            case .recipient, nil: "recipient"
            }
        self.init(
            campaign: campaign.name, occurrence: occurrence.key, startsAt: occurrence.startsAt.iso8601,
            startsAtLocal: local.wall(at: occurrence.startsAt).description,
            lastStartsAt: occurrence.lastStartsAt.iso8601, byEachClock: occurrence.isByEachClock,
            missedAfter: occurrence.missedAfter.iso8601, topic: campaign.topic,
            priority: campaign.priority.rawValue, zone: zone,
            clockChanges: changes.isEmpty ? nil : changes.map(ScheduleResult.ClockChangeEntry.init),
            missingValues: missing.isEmpty ? nil : missing, values: values.isEmpty ? nil : values)
    }

    /// The reason why the run will fail: `will fail: no value for title`. `nil` if every variable has a value.
    package var failure: String? { missingValues.map { MissingValues.summary($0) } }
}

/// The words for variables without a value.
package enum MissingValues {
    package static func summary(_ names: [String]) -> String {
        "will fail: no value for \(names.joined(separator: ", "))"
    }
}

extension ScheduleResult.ClockChangeEntry {
    fileprivate init(_ change: ClockChange) {
        zone = change.zone
        kind = change.kind.rawValue
        startsAtLocal = (TimeZone(identifier: change.zone) ?? .gmt).wall(at: change.startsAt).description
    }
}
