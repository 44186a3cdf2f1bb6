import Foundation

/// The start times of a campaign, and the local quiet hours of devices.
package struct Schedule: Hashable, Sendable, Codable {
    package var trigger: Trigger
    package var zone: Zone?
    package var unknownZone: UnknownZone?
    package var missedZone: MissedZone
    package var lateByMax: Duration?
    package var quietHours: QuietHours?
    /// `nil` if every device has its turn at the time of the trigger.
    package var bestHour: BestHours?

    private enum CodingKeys: String, CodingKey {
        case trigger = "trigger", zone = "zone", unknownZone = "unknownZone", missedZone = "missedZone"
        case lateByMax = "lateByMax", quietHours = "quietHours", bestHour = "bestHour"
    }

    package init(trigger: Trigger) {
        self.trigger = trigger
        missedZone = .nextDay
    }

    package enum Trigger: Hashable, Sendable, Codable {
        /// A local date and time, `2026-12-01T09:00`.
        case at(String)
        /// Five fields, or a word such as `@daily`.
        case cron(String)
        /// Only quiet hours. A person or a timer starts the run.
        case none

        private enum CodingKeys: String, CodingKey {
            case at = "at", cron = "cron", none = "none"
        }
    }

    package enum Zone: Hashable, Sendable, Codable {
        case recipient
        /// An IANA name.
        case named(String)

        private enum CodingKeys: String, CodingKey {
            case recipient = "recipient", named = "named"
        }
    }

    package enum UnknownZone: Hashable, Sendable, Codable {
        case named(String)
        case drop

        private enum CodingKeys: String, CodingKey {
            case named = "named", drop = "drop"
        }
    }

    package enum MissedZone: String, Hashable, Sendable, Codable, CaseIterable {
        case sendNow = "send_now"
        case nextDay = "next_day"
        case drop
    }

    /// Each device has its turn at the hour at which it opens the app most. The hours begin at the time of the trigger.
    package struct BestHours: Hashable, Sendable, Codable {
        /// The end of the hours, in minutes after local midnight.
        package var untilMinute: Int

        private enum CodingKeys: String, CodingKey {
            case untilMinute = "untilMinute"
        }

        package init(untilMinute: Int) { self.untilMinute = untilMinute }

        /// Returns the hours of the day that begin at a local time.
        package func band(from wall: WallTime) -> Range<Int> {
            let first = Int(wall.secondOfDay / 3600)
            return first..<max(first + 1, untilMinute / 60)
        }

        /// Returns the time from the first hour to the last one.
        package func span(from wall: WallTime) -> Duration { .seconds(3600 * (band(from: wall).count - 1)) }
    }

    package struct QuietHours: Hashable, Sendable, Codable {
        package enum Policy: String, Hashable, Sendable, Codable, CaseIterable {
            case `defer`, drop
        }

        /// Minutes after local midnight.
        package var fromMinute: Int
        package var toMinute: Int
        package var policy: Policy

        private enum CodingKeys: String, CodingKey {
            case fromMinute = "fromMinute", toMinute = "toMinute", policy = "policy"
        }

        package init(fromMinute: Int, toMinute: Int, policy: Policy) {
            self.fromMinute = fromMinute
            self.toMinute = toMinute
            self.policy = policy
        }
    }
}

/// A feed whose new items start a campaign automatically. Each item is an occurrence.
package struct FeedTrigger: Hashable, Sendable, Codable {
    /// `https://` or `http://`.
    package var url: String
    /// The interval between polls.
    package var every: Duration
    /// The fields by name of variable.
    package var variables: [String: FeedField]
    /// The maximum age of an item. An older item is `missed`. An item without a date counts as published when it is
    /// found.
    package var lateByMax: Duration
    /// The maximum number of new items per poll. If there are more, none is sent: the feed was rebuilt, so its items
    /// are not news.
    package var newMax: Int

    private enum CodingKeys: String, CodingKey {
        case url = "url", every = "every", variables = "variables", lateByMax = "lateByMax", newMax = "newMax"
    }

    package init(url: String) {
        self.url = url
        every = .seconds(15 * 60)
        variables = [:]
        lateByMax = .seconds(86_400)
        newMax = 3
    }
}

/// A field of a feed item that can set a variable.
package enum FeedField: String, Hashable, Sendable, Codable, CaseIterable {
    case title = "item.title"
    case link = "item.link"
    case guid = "item.guid"
    case summary = "item.summary"
    case author = "item.author"
    case published = "item.published"
    /// The address of the audio or video file.
    case enclosure = "item.enclosure"
    case episode = "item.episode"
    case season = "item.season"
    case feedTitle = "feed.title"
    case feedLink = "feed.link"
}

/// A schedule's quiet hours, in the local time of each device.
package struct QuietTimes: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// `until` is the next quiet moment, with changes of the clocks taken into account.
        case awake(until: Timestamp)
        /// `until` is the first later moment that is not quiet.
        case quiet(until: Timestamp)
        /// The device has no known time zone, and the schedule says `unknown_zone: drop`.
        case zoneUnknown
    }

    package let policy: Schedule.QuietHours.Policy
    /// Milliseconds after local midnight.
    private let fromMs, toMs: Int64
    /// The zone for devices without a known zone. `nil` if none is assumed.
    private let usualZone: String?

    private static let dayMs: Int64 = 86_400_000
    /// An upper bound on the changes of a zone's offset within one night.
    private static let clockChangesMax = 4

    /// Returns `nil` if there are no quiet hours. The campaign file says how to treat devices without a known zone. If
    /// it does not, the schedule's own zone applies to them, or else UTC.
    package init?(_ schedule: Schedule?) {
        guard let schedule, let hours = schedule.quietHours, hours.fromMinute != hours.toMinute else { return nil }
        policy = hours.policy
        fromMs = Int64(hours.fromMinute) * 60_000
        toMs = Int64(hours.toMinute) * 60_000
        usualZone =
            switch (schedule.unknownZone, schedule.zone) {
            case (.named(let name), _): name
            case (.drop, _): nil
            case (nil, .named(let name)): name
            case (nil, .recipient), (nil, nil): "GMT"
            }
    }

    /// - Parameter zone: an IANA name, as the device reported it.
    package func state(inZone zone: String?, at moment: Timestamp) -> State {
        let own = zone.flatMap { TimeZone(identifier: $0) }
        guard let clock = own ?? usualZone.flatMap({ TimeZone(identifier: $0) }) else { return .zoneUnknown }
        return isQuiet(moment, clock)
            ? .quiet(until: change(after: moment, to: toMs, clock) { !isQuiet($0, clock) })
            : .awake(until: change(after: moment, to: fromMs, clock) { isQuiet($0, clock) })
    }

    /// Tells whether a moment is in the quiet hours, which may cross midnight.
    private func isQuiet(_ moment: Timestamp, _ zone: TimeZone) -> Bool {
        let local = timeOfDay(moment, zone)
        return fromMs < toMs ? local >= fromMs && local < toMs : local >= fromMs || local < toMs
    }

    /// Returns the first moment at which clocks show `target`, or are put forward past it. The search goes from one
    /// change of the zone's offset to the next. Quiet hours may end immediately if clocks are put forward. An hour that
    /// clocks show twice is quiet twice.
    private func change(
        after start: Timestamp, to target: Int64, _ zone: TimeZone, _ isReached: (Timestamp) -> Bool
    ) -> Timestamp {
        var moment = start
        for _ in 0..<Self.clockChangesMax {
            let left = (target - timeOfDay(moment, zone) + Self.dayMs) % Self.dayMs
            let end = moment + .milliseconds(left)
            guard let change = clockChange(from: moment, upTo: end, zone) else { return end }
            guard !isReached(change) else { return change }
            moment = change
        }
        return moment
    }

    private func timeOfDay(_ moment: Timestamp, _ zone: TimeZone) -> Int64 {
        let local = (moment.milliseconds + offsetMs(moment.seconds, zone)) % Self.dayMs
        return local < 0 ? local + Self.dayMs : local
    }

    /// Returns the first change of the zone's offset, by bisection. Offsets change on whole seconds.
    private func clockChange(from start: Timestamp, upTo end: Timestamp, _ zone: TimeZone) -> Timestamp? {
        var before = start.seconds
        var after = end.seconds
        let usual = offsetMs(before, zone)
        guard offsetMs(after, zone) != usual else { return nil }
        while after - before > 1 {
            let middle = before + (after - before) / 2
            if offsetMs(middle, zone) == usual { before = middle } else { after = middle }
        }
        return Timestamp(milliseconds: after * 1000)
    }

    private func offsetMs(_ seconds: Int64, _ zone: TimeZone) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))) * 1000
    }
}
