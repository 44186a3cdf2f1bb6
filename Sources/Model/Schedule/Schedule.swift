import Foundation

/// When a campaign starts by itself, and at which local hours a device may hear from it.
package struct Schedule: Hashable, Sendable, Codable {
    package var trigger: Trigger
    package var zone: Zone?
    package var unknownZone: UnknownZone?
    package var missedZone: MissedZone
    package var lateByMax: Duration?
    package var quietHours: QuietHours?

    private enum CodingKeys: String, CodingKey {
        case trigger = "trigger", zone = "zone", unknownZone = "unknownZone", missedZone = "missedZone"
        case lateByMax = "lateByMax", quietHours = "quietHours"
    }

    package init(trigger: Trigger) {
        self.trigger = trigger
        missedZone = .nextDay
    }

    package enum Trigger: Hashable, Sendable, Codable {
        /// A local date and time, `2026-12-01T09:00`.
        case at(String)
        /// Five fields, or `@daily` and the like.
        case cron(String)
        /// Neither: only quiet hours are given, the run is started by hand or by a timer.
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

/// A feed whose new items start a campaign by themselves: each item is an occurrence.
package struct FeedTrigger: Hashable, Sendable, Codable {
    /// `https://` or `http://`.
    package var url: String
    /// The time from one poll to the next.
    package var every: Duration
    /// By variable's name.
    package var variables: [String: FeedField]
    /// An item published longer ago than this is `missed`; one without a date counts as published when it is found.
    package var lateByMax: Duration
    /// With more new items than this at one poll none is sent: the feed was rebuilt, its items are not news.
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

/// What an item of a feed can give to a variable.
package enum FeedField: String, Hashable, Sendable, Codable, CaseIterable {
    case title = "item.title"
    case link = "item.link"
    case guid = "item.guid"
    case summary = "item.summary"
    case author = "item.author"
    case published = "item.published"
    /// The address of the sound or film.
    case enclosure = "item.enclosure"
    case episode = "item.episode"
    case season = "item.season"
    case feedTitle = "feed.title"
    case feedLink = "feed.link"
}

/// A schedule's quiet hours, by the local time of each device.
package struct QuietTimes: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// `until` is the next moment that is quiet; where the clocks change on the way, at the latest.
        case awake(until: Timestamp)
        /// `until` is the first moment after the one asked for that is not quiet.
        case quiet(until: Timestamp)
        /// The device has no known time zone, and the schedule says `unknown_zone: drop`.
        case zoneUnknown
    }

    package let policy: Schedule.QuietHours.Policy
    /// Milliseconds after local midnight.
    private let fromMs, toMs: Int64
    /// For devices without a known zone; nil: none is assumed.
    private let usualZone: String?

    private static let dayMs: Int64 = 86_400_000
    /// No zone changes its offset more often than this within one night.
    private static let clockChangesMax = 4

    /// Nil without quiet hours. A campaign file says what to do with devices that have no zone; where nothing says it,
    /// they are in the schedule's own zone, or in UTC.
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

    /// The hours may run over midnight.
    private func isQuiet(_ moment: Timestamp, _ zone: TimeZone) -> Bool {
        let local = timeOfDay(moment, zone)
        return fromMs < toMs ? local >= fromMs && local < toMs : local >= fromMs || local < toMs
    }

    /// The first moment at which clocks show `target`, or put forward past it. Goes from one change of the zone's offset
    /// to the next: where the clocks are put forward the quiet hours may end at once, and an hour that is shown twice is
    /// quiet twice.
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

    /// The first change of the zone's offset, found by bisection: offsets change on whole seconds.
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
