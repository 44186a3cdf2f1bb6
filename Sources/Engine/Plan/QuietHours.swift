import Foundation
import Model

extension Schedule.QuietHours {
    /// Whether it is one of these hours in a zone. They may run over midnight; from and to being equal means none.
    func contain(_ moment: Timestamp, in zone: TimeZone) -> Bool {
        let local = moment.seconds + Int64(zone.secondsFromGMT(for: moment.date))
        let minute = Int(((local % 86_400) + 86_400) % 86_400) / 60
        return fromMinute <= toMinute
            ? (fromMinute..<toMinute).contains(minute) : minute >= fromMinute || minute < toMinute
    }
}

extension Reach {
    /// How many are within the schedule's quiet hours at a moment; zones that are not known are those of the schedule.
    func quietDevices(_ schedule: Schedule?, at moment: Timestamp) -> Int {
        guard let schedule, let hours = schedule.quietHours else { return 0 }
        let usual: String? = if case .named(let name) = schedule.unknownZone { name } else { nil }
        return byZone.reduce(0) { sum, slice in
            let name = slice.zone.flatMap { TimeZone(identifier: $0) == nil ? nil : $0 } ?? usual
            guard let zone = name.flatMap({ TimeZone(identifier: $0) }) else { return sum }
            return hours.contain(moment, in: zone) ? sum + slice.count : sum
        }
    }
}
