package import Foundation

/// One time at which a campaign starts automatically.
package struct Occurrence: Hashable, Sendable {
    /// The local time of the occurrence, in the schedule's zone or in each device's.
    package var wall: WallTime
    /// The start of the run. With recipient-local times, the moment when the first clocks on Earth show ``wall``.
    package var startsAt: Timestamp
    /// The turn of the last devices. It is later than ``startsAt`` only with recipient-local times.
    package var lastStartsAt: Timestamp
    /// The deadline for finding the occurrence. After it, the occurrence is missed and nothing is sent.
    package var missedAfter: Timestamp

    /// Whether each device has its turn by its own clock.
    package var isByEachClock: Bool { lastStartsAt > startsAt }

    /// The occurrence's name within its campaign: `2026-12-01T09:00`.
    package var key: String { wall.description }
}

/// The effect of a clock change on an occurrence.
package struct ClockChange: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The clocks are put forward past the time. The occurrence happens at that moment.
        case skipped
        /// The clocks are put back past the time. The occurrence happens the first time.
        case twice
    }

    package var kind: Kind
    /// An IANA name.
    package var zone: String
    /// The moment of the occurrence in that zone.
    package var startsAt: Timestamp
}

/// A schedule, prepared for computing its occurrences.
///
/// Each scheduled time occurs once a day. A time that the clocks skip occurs at the moment when they are put forward.
/// A time that they show twice occurs the first time. Two times that fall on the same moment are one occurrence. A day
/// that a zone skips altogether, at the date line, has no occurrences.
package struct Timetable: Hashable, Sendable {
    package enum Zone: Hashable, Sendable {
        /// Each device's own zone.
        case recipient
        case fixed(TimeZone)
    }

    /// The default of `late_by_max`.
    package static let lateByMaxDefault: Duration = .seconds(3600)
    /// The distances from UTC of the first and the last zone to reach a local time: UTC+14 and UTC-12.
    package static let firstOffset: Duration = .seconds(14 * 3600)
    package static let lastOffset: Duration = .seconds(12 * 3600)
    /// The number of days ahead that are searched for an occurrence. The next 29 February may be eight years away.
    private static let daysMax: Int64 = 366 * 9

    private enum Times: Hashable, Sendable {
        case once(WallTime)
        case cron(CronExpression)
    }

    package let zone: Zone
    package let lateByMax: Duration
    private let times: Times
    private let bestHour: Schedule.BestHours?

    /// Returns `nil` for a schedule without automatic starts, and for one that validation of the file refuses.
    package init?(_ schedule: Schedule) {
        switch schedule.trigger {
        case .none: return nil
        case .at(let text):
            guard let wall = WallTime(text) else { return nil }
            times = .once(wall)
        case .cron(let text):
            guard let cron = try? CronExpression(text) else { return nil }
            times = .cron(cron)
        }
        switch schedule.zone {
        case .recipient: zone = .recipient
        case .named(let name):
            guard let named = TimeZone(identifier: name) else { return nil }
            zone = .fixed(named)
        case nil: return nil
        }
        lateByMax = schedule.lateByMax ?? Self.lateByMaxDefault
        bestHour = schedule.bestHour
    }

    /// Whether the trigger is one fixed time and not a rule.
    package var isOnce: Bool {
        if case .once = times { true } else { false }
    }

    /// Returns the occurrence of a fixed time that has come, even if it is already missed. Returns `nil` for rules, and
    /// for a future time.
    package func past(at now: Timestamp) -> Occurrence? {
        guard case .once(let wall) = times, let only = occurrence(at: wall), only.startsAt <= now else { return nil }
        return only
    }

    /// Returns the first occurrence that starts after a moment, or `nil` if there is none.
    package func next(after moment: Timestamp) -> Occurrence? {
        occurrences(after: moment, through: nil, atMost: 1).first
    }

    /// Returns the first `limit` occurrences that start after the moment `after` and at or before `end`, in order.
    package func occurrences(after: Timestamp, through end: Timestamp?, atMost limit: Int = .max) -> [Occurrence] {
        var found: [Occurrence] = []
        var last = after
        visitWalls(from: wall(at: after)) { wall in
            guard found.count < limit else { return false }
            guard let occurrence = occurrence(at: wall), occurrence.startsAt > last else { return true }
            if let end, occurrence.startsAt > end { return false }
            last = occurrence.startsAt
            found.append(occurrence)
            return true
        }
        return found
    }

    /// Returns the occurrence with this key or time. `nil` if the schedule has no such occurrence.
    package func occurrence(named text: String) -> Occurrence? {
        guard let wall = WallTime(text), let occurrence = occurrence(at: wall) else { return nil }
        let same = occurrences(after: occurrence.startsAt - .seconds(1), through: occurrence.startsAt).first
        return same.flatMap { $0.wall == wall ? $0 : nil }
    }

    /// Returns the clock changes that skip or repeat the time of an occurrence, in the schedule's own zone or in well
    /// known zones.
    package func clockChanges(at occurrence: Occurrence) -> [ClockChange] {
        switch zone {
        case .fixed(let zone):
            guard includes(occurrence.wall) else {
                return [ClockChange(kind: .skipped, zone: zone.identifier, startsAt: occurrence.startsAt)]
            }
            guard zone.showsTwice(occurrence.wall, for: 60) else { return [] }
            return [ClockChange(kind: .twice, zone: zone.identifier, startsAt: occurrence.startsAt)]
        case .recipient:
            return Self.wellKnownZones.compactMap { zone in
                let moment = zone.moment(of: occurrence.wall)
                if zone.wall(at: moment) != occurrence.wall {
                    return ClockChange(kind: .skipped, zone: zone.identifier, startsAt: moment)
                }
                guard zone.showsTwice(occurrence.wall, for: 60) else { return nil }
                return ClockChange(kind: .twice, zone: zone.identifier, startsAt: moment)
            }
        }
    }

    /// One zone for each daylight saving rule with a large population. Checking all zones would take too long.
    private static let wellKnownZones = [
        "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Halifax",
        "America/Santiago", "Europe/London", "Europe/Berlin", "Europe/Athens", "Africa/Cairo", "Asia/Jerusalem",
        "Australia/Adelaide", "Australia/Sydney", "Pacific/Auckland",
    ].compactMap { TimeZone(identifier: $0) }

    /// Tells whether the rule matches exactly this time.
    private func includes(_ wall: WallTime) -> Bool {
        switch times {
        case .once(let written): written == wall
        case .cron(let cron):
            cron.includes(wall.day) && wall.secondOfDay % 60 == 0
                && cron.minutesOfDay.contains(Int(wall.secondOfDay / 60))
        }
    }

    /// Calls the body for each time in rising order until the body returns false.
    private func visitWalls(from start: WallTime, _ body: (WallTime) -> Bool) {
        switch times {
        case .once(let wall): _ = body(wall)
        case .cron(let cron):
            // Some times of the first day may be over. The body skips them.
            var day = start.day
            var lastDay = day.number + Self.daysMax
            while day.number <= lastDay {
                if cron.includes(day) {
                    for minute in cron.minutesOfDay where !body(WallTime(day, minute: minute)) { return }
                    lastDay = day.number + Self.daysMax
                }
                day.number += 1
            }
        }
    }

    /// Returns the local time in the schedule's zone. With recipient-local times, it is the time of the first clocks on
    /// Earth.
    private func wall(at moment: Timestamp) -> WallTime {
        switch zone {
        case .recipient: WallTime(seconds: (moment + Self.firstOffset).seconds)
        case .fixed(let zone): zone.wall(at: moment)
        }
    }

    private func occurrence(at wall: WallTime) -> Occurrence? {
        switch zone {
        case .recipient:
            let moment = Timestamp(seconds: wall.seconds)
            let last = moment + Self.lastOffset + (bestHour?.span(from: wall) ?? .zero)
            return Occurrence(
                wall: wall, startsAt: moment - Self.firstOffset, lastStartsAt: last, missedAfter: last + lateByMax)
        case .fixed(let zone):
            let moment = zone.moment(of: wall)
            let shown = zone.wall(at: moment)
            guard shown.seconds - wall.seconds < 12 * 3600 else { return nil }
            return Occurrence(wall: shown, startsAt: moment, lastStartsAt: moment, missedAfter: moment + lateByMax)
        }
    }
}

/// The turn of each device, in a run that follows each device's local time.
///
/// Zones with the same offset at that date share a moment, and so are one wave. If the run started more than
/// `late_by_max` after a zone's turn, `missed_zone` decides. Under `next_day`, a zone is suppressed as late if its
/// turn on the next day is also over by more than `late_by_max`. Its devices never get the push at another hour
/// instead.
package struct RecipientWaves: Hashable, Sendable {
    package enum Turn: Hashable, Sendable {
        case at(Timestamp)
        case never(SuppressionReason)
    }

    private let wall: WallTime
    package let startedAt: Timestamp
    /// The hours at which devices may have their turn. `nil` if all have it at the same local time.
    package let band: Range<Int>?
    private let lateByMax: Duration
    private let missedZone: Schedule.MissedZone
    private let unknownZone: TimeZone?

    /// Returns `nil` for a run that starts at the same moment everywhere.
    ///
    /// - Parameter startedAt: the start of the run, which decides for which zones it is too late.
    package init?(_ definition: RunDefinition, startedAt: Timestamp) {
        guard let wall = definition.wall, let schedule = definition.campaign.schedule else { return nil }
        self.wall = wall
        self.startedAt = startedAt
        band = schedule.bestHour?.band(from: wall)
        lateByMax = schedule.lateByMax ?? Timetable.lateByMaxDefault
        missedZone = schedule.missedZone
        unknownZone =
            switch schedule.unknownZone {
            case .named(let name): TimeZone(identifier: name)
            case .drop, nil: nil
            }
    }

    /// Returns the zone that counts for a device; `nil` if it is unknown, and the campaign assumes none.
    ///
    /// - Parameter name: an IANA name, as the device reported it. A name that this machine does not know counts as
    ///   none.
    package func zone(named name: String?) -> TimeZone? { name.flatMap { TimeZone(identifier: $0) } ?? unknownZone }

    /// - Parameters:
    ///   - name: an IANA name, as the device reported it.
    ///   - hour: the device's hour of the day; `nil` for the time of the schedule.
    package func turn(inZone name: String?, hour: Int? = nil) -> Turn {
        guard let zone = zone(named: name) else { return .never(.unknownZone) }
        let wall = hour.map { WallTime(self.wall.day, minute: $0 * 60) } ?? self.wall
        let moment = zone.moment(of: wall)
        guard isOver(moment) else { return .at(moment) }
        switch missedZone {
        case .sendNow: return .at(startedAt)
        case .nextDay:
            let next = zone.moment(of: WallTime(seconds: wall.seconds + 86_400))
            return isOver(next) ? .never(.late) : .at(max(startedAt, next))
        case .drop: return .never(.late)
        }
    }

    /// Whether the run started more than `late_by_max` after this turn.
    private func isOver(_ turn: Timestamp) -> Bool {
        turn + lateByMax < startedAt
    }
}
