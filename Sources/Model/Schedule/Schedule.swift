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
