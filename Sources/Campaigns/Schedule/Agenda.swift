package import Foundation
package import Model
package import Store

/// The occurrences that are due, and the next one to start. The caller tells this value the time.
///
/// An agenda covers a schedule from its mark on. A campaign without a mark, or with a changed schedule, gets a new
/// mark. The new mark is the time at which the file was written, but no earlier than `late_by_max` ago.
///
/// - If a file is added at ten o'clock, its occurrence of nine o'clock is not started.
/// - If a file was written in time, its occurrence counts even if the daemon reads the file later.
/// - An `at` counts even if it is before the mark, because a person wrote that exact time.
package struct Agenda: Sendable {
    /// The maximum time that an agenda looks back. Older occurrences are dropped.
    package static let lookBackMax: Duration = .seconds(31 * 86_400)
    /// The maximum number of occurrences of a campaign to catch up on. If more have passed unnoticed, the latest ones
    /// count.
    package static let catchUpMax = 100

    package struct Due: Hashable, Sendable {
        package var campaign: ReadyCampaign
        package var occurrence: Occurrence
        /// The reason why the last attempt to start it failed. `nil` if it was not tried.
        package var fault: String?

        package init(campaign: ReadyCampaign, occurrence: Occurrence) {
            self.campaign = campaign
            self.occurrence = occurrence
        }
    }

    private struct Entry {
        var campaign: ReadyCampaign
        var timetable: Timetable
        var scheduleHash: Int64
        var checkedThrough: Timestamp
        var next: Occurrence?
    }

    private var entries: [String: Entry] = [:]

    package init() {}

    /// Takes over the campaigns of the files, and forgets all others. Returns the marks to store for campaigns that are
    /// new or have a changed schedule.
    package mutating func update(
        _ campaigns: [ReadyCampaign], marks: [String: ScheduleMark], now: Timestamp
    ) -> [ScheduleMark] {
        var kept: [String: Entry] = [:]
        var newMarks: [ScheduleMark] = []
        for campaign in campaigns {
            guard let timetable = campaign.timetable else { continue }
            let name = campaign.campaign.name
            let hash = campaign.scheduleHash
            if var known = entries[name], known.scheduleHash == hash {
                known.campaign = campaign
                known.timetable = timetable
                kept[name] = known
                continue
            }
            // An occurrence that is exactly as late as allowed is not missed.
            var since = max(min(campaign.changedAt, now), now - timetable.lateByMax - .milliseconds(1))
            if let mark = marks[name], mark.scheduleHash == hash {
                since = mark.since
            } else {
                newMarks.append(ScheduleMark(campaign: name, scheduleHash: hash, since: since))
            }
            let earliest = now - Self.lookBackMax
            let checkedThrough = timetable.isOnce ? earliest : max(since, earliest)
            kept[name] = Entry(
                campaign: campaign, timetable: timetable, scheduleHash: hash, checkedThrough: checkedThrough,
                next: timetable.next(after: checkedThrough))
        }
        entries = kept
        return newMarks
    }

    /// The names of the campaigns with a schedule.
    package var names: [String] { Array(entries.keys) }

    /// When the next occurrence of any campaign starts. The time is in the past if an occurrence is due now.
    package var nextStart: Timestamp? { next?.occurrence.startsAt }

    /// The next occurrence. If several start at one moment, it is the first by name.
    package var next: Due? {
        var first: Due?
        for entry in entries.values {
            guard let occurrence = entry.next else { continue }
            if let first,
                (first.occurrence.startsAt, first.campaign.campaign.name)
                    < (occurrence.startsAt, entry.campaign.campaign.name)
            {
                continue
            }
            first = Due(campaign: entry.campaign, occurrence: occurrence)
        }
        return first
    }

    /// Returns the occurrences that have become due since the last call, the earliest first. At one moment, the more
    /// urgent campaign comes first.
    package mutating func due(at now: Timestamp) -> [Due] {
        var due: [Due] = []
        for (name, entry) in entries {
            guard let next = entry.next, next.startsAt <= now else { continue }
            var entry = entry
            due += entry.timetable.occurrences(after: entry.checkedThrough, through: now).suffix(Self.catchUpMax)
                .map { Due(campaign: entry.campaign, occurrence: $0) }
            entry.checkedThrough = now
            entry.next = entry.timetable.next(after: now)
            entries[name] = entry
        }
        return due.sorted { left, right in
            (left.occurrence.startsAt, -left.campaign.campaign.priority.rawValue, left.campaign.campaign.name)
                < (right.occurrence.startsAt, -right.campaign.campaign.priority.rawValue, right.campaign.campaign.name)
        }
    }
}

/// A campaign as its files describe it now, ready to be started.
package struct ReadyCampaign: Hashable, Sendable {
    @Shared package private(set) var campaign: Campaign
    @Shared package private(set) var template: Template
    /// By variant's name.
    package let variantTemplates: [String: Template]
    /// When its file was last written.
    package let changedAt: Timestamp
    /// SHA-256 in hex of the files that it was read from, by path.
    package let files: [String: String]
    /// `nil` if the campaign does not start automatically.
    package let timetable: Timetable?

    package init(
        campaign: Campaign, template: Template, variantTemplates: [String: Template] = [:], changedAt: Timestamp,
        files: [String: String] = [:]
    ) {
        self.campaign = campaign
        self.template = template
        self.variantTemplates = variantTemplates
        self.changedAt = changedAt
        self.files = files
        timetable = campaign.schedule.flatMap(Timetable.init)
    }

    /// Returns the definition of an occurrence's run, with the variables' defaults and the given values. A value of a
    /// variable that the campaign no longer declares is left out.
    package func definition(
        for occurrence: Occurrence, with variables: [String: String] = [:]
    ) -> RunDefinition {
        var definition = definition(plannedAt: occurrence.startsAt)
        definition.variables.merge(campaign.declared(variables)) { $1 }
        return definition.planned(for: occurrence)
    }

    /// Returns the definition of a run planned for a moment, with the variables' defaults.
    package func definition(plannedAt moment: Timestamp) -> RunDefinition {
        RunDefinition(
            campaign: campaign, template: template, variantTemplates: variantTemplates,
            variables: campaign.variables, plannedAt: moment)
    }

    /// The hash that identifies the schedule: its trigger and its zone, and nothing else.
    var scheduleHash: Int64 {
        guard let schedule = campaign.schedule else { return 0 }
        let zone: String =
            switch schedule.zone {
            case .named(let name): name
            case .recipient: "recipient"
            case nil: ""
            }
        let trigger: String =
            switch schedule.trigger {
            case .at(let text): "at \(text)"
            case .cron(let text): "cron \(text)"
            case .none: ""
            }
        return Int64(bitPattern: FNV1a.hash("\(trigger) \(zone)"))
    }
}

/// The occurrence of a run that an external timer starts, named by the machine's wall clock. All starts within one
/// day, hour or minute name the same occurrence, so there is one run.
///
///     timer-2026-11-22    timer-2026-11-22T09    timer-2026-11-22T09:05
///
/// If the clock is put back, an hour that it shows twice is two occurrences. Their keys differ by the offset from
/// UTC: `timer-2026-10-25T02+02:00` and `timer-2026-10-25T02+01:00`. A day is one occurrence, however many hours it
/// has.
package enum TimerOccurrence {
    package enum Unit: String, Hashable, Sendable, CaseIterable {
        case day, hour, minute

        fileprivate var seconds: Int64 {
            switch self {
            case .day: 86_400
            case .hour: 3600
            case .minute: 60
            }
        }

        /// The number of characters of `2026-11-22T09:05` up to and including the unit.
        fileprivate var digits: Int {
            switch self {
            case .day: 10
            case .hour: 13
            case .minute: 16
            }
        }
    }

    /// The beginning of every timer key.
    package static let prefix = "timer-"

    package static func key(by unit: Unit, at now: Timestamp, zone: TimeZone) -> String {
        let shown = zone.wall(at: now)
        let start = WallTime(seconds: shown.seconds - shown.secondOfDay % unit.seconds)
        let key = prefix + start.description.prefix(unit.digits)
        guard unit != .day, zone.showsTwice(start, for: unit.seconds) else { return key }
        return key + offset(shown.seconds - now.seconds)
    }

    /// Throws for a new occurrence of a period that began before the store was restored: the store does not know
    /// whether it was sent.
    package static func requireKnown(
        by unit: Unit, of campaign: String, _ store: any RunLog, now: Timestamp, zone: TimeZone
    ) async throws {
        let period = { key(by: unit, at: $0, zone: zone) }
        guard let gap = try await store.restoreGap(), gap.reaches(into: period, at: now),
            try await store.run(campaign: campaign, occurrence: period(now)) == nil
        else { return }
        throw Failure(
            .refused,
            "\(campaign): the occurrence \(period(now)) may have been sent already, because the store is a backup from "
                + "\(gap.madeAt.iso8601), restored at \(gap.restoredAt.iso8601); check what was sent in between, then "
                + "send the occurrence with `fanfare run \(campaign) --occurrence \(period(now))`, or wait for the "
                + "next \(unit.rawValue)")
    }

    /// `+02:00`.
    private static func offset(_ seconds: Int64) -> String {
        let minutes = Int(seconds.magnitude / 60)
        let digits = [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
        return (seconds < 0 ? "-" : "+") + digits.joined(separator: ":")
    }
}
