import Foundation

/// Whose turn comes when, in a run that follows each device's own clock.
///
/// Zones with the same offset at that date share a moment, and so are one wave. A zone whose turn was over when the run
/// started, by more than `late_by_max`, goes by `missed_zone`.
package struct RecipientWaves: Hashable, Sendable {
    package enum Turn: Hashable, Sendable {
        case at(Timestamp)
        case never(SuppressionReason)
    }

    private let wall: WallTime
    private let startedAt: Timestamp
    private let lateByMax: Duration
    private let missedZone: Schedule.MissedZone
    private let unknownZone: TimeZone?

    /// Nil for a run that starts at one moment everywhere.
    ///
    /// - Parameter startedAt: when the run was started, which decides which zones it came too late for.
    package init?(_ definition: RunDefinition, startedAt: Timestamp) {
        guard let wall = definition.wall, let schedule = definition.campaign.schedule else { return nil }
        self.wall = wall
        self.startedAt = startedAt
        lateByMax = schedule.lateByMax ?? Timetable.lateByMaxDefault
        missedZone = schedule.missedZone
        unknownZone =
            switch schedule.unknownZone {
            case .named(let name): TimeZone(identifier: name)
            case .drop, nil: nil
            }
    }

    /// - Parameter name: an IANA name, as the device reported it; one that no clock knows counts as none.
    package func turn(inZone name: String?) -> Turn {
        guard let zone = name.flatMap({ TimeZone(identifier: $0) }) ?? unknownZone else { return .never(.unknownZone) }
        let moment = zone.moment(of: wall)
        guard moment + lateByMax < startedAt else { return .at(moment) }
        switch missedZone {
        case .sendNow: return .at(startedAt)
        case .nextDay: return .at(max(startedAt, zone.moment(of: WallTime(seconds: wall.seconds + 86_400))))
        case .drop: return .never(.late)
        }
    }
}
