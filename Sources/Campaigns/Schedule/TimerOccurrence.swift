package import Foundation
package import Model

/// The occurrence that a timer's moment stands for, named by what the machine's clock shows: however often the timer, a
/// person and a restart fire within one day, hour or minute, it is one run.
///
///     timer-2026-11-22    timer-2026-11-22T09    timer-2026-11-22T09:05
///
/// An hour that the clock shows twice, when it is put back, is two occurrences, told apart by their offset from UTC:
/// `timer-2026-10-25T02+02:00` and `timer-2026-10-25T02+01:00`. A day is one, however many hours it has.
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

        /// Of `2026-11-22T09:05`.
        fileprivate var digits: Int {
            switch self {
            case .day: 10
            case .hour: 13
            case .minute: 16
            }
        }
    }

    /// What the keys of all of them begin with.
    package static let prefix = "timer-"

    package static func key(by unit: Unit, at now: Timestamp, zone: TimeZone) -> String {
        let shown = zone.wall(at: now)
        let start = WallTime(seconds: shown.seconds - shown.secondOfDay % unit.seconds)
        let key = prefix + start.description.prefix(unit.digits)
        guard unit != .day, zone.showsTwice(start, for: unit.seconds) else { return key }
        return key + offset(shown.seconds - now.seconds)
    }

    /// `+02:00`.
    private static func offset(_ seconds: Int64) -> String {
        let minutes = Int(seconds.magnitude / 60)
        let digits = [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
        return (seconds < 0 ? "-" : "+") + digits.joined(separator: ":")
    }
}
