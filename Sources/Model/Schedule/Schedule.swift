/// When a campaign starts by itself, and at which local hours a device may hear from it.
package struct Schedule: Hashable, Sendable, Codable {
    package var trigger: Trigger
    package var zone: Zone?
    package var unknownZone: UnknownZone?
    package var missedZone: MissedZone
    package var lateByMax: Duration?
    package var quietHours: QuietHours?

    package init(trigger: Trigger) {
        self.trigger = trigger
        missedZone = .nextDay
    }

    package enum Trigger: Hashable, Sendable, Codable {
        /// A local date and time, `2026-12-01T09:00`.
        case at(String)
        /// Five fields, or `@daily` and friends.
        case cron(String)
        /// Neither: only quiet hours are given, the run is started by hand or by a timer.
        case none
    }

    package enum Zone: Hashable, Sendable, Codable {
        case recipient
        /// An IANA name.
        case named(String)
    }

    package enum UnknownZone: Hashable, Sendable, Codable {
        case named(String)
        case drop
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

        package init(fromMinute: Int, toMinute: Int, policy: Policy) {
            self.fromMinute = fromMinute
            self.toMinute = toMinute
            self.policy = policy
        }
    }
}
