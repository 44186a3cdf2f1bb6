import Campaigns
import Foundation
import Model
import Store
import Testing

struct TimerOccurrenceTests {
    private static func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

    private static func moment(_ text: String) throws -> Timestamp {
        Timestamp(try Date(text, strategy: .iso8601))
    }

    @Test(arguments: [
        (TimerOccurrence.Unit.day, "UTC", "2026-11-22T09:05:59Z", "timer-2026-11-22"),
        (.hour, "UTC", "2026-11-22T09:05:59Z", "timer-2026-11-22T09"),
        (.minute, "UTC", "2026-11-22T09:05:59Z", "timer-2026-11-22T09:05"),
        // The day begins where the machine is.
        (.day, "Asia/Tokyo", "2026-11-22T15:00:00Z", "timer-2026-11-23"),
        (.day, "America/New_York", "2026-11-22T04:59:59Z", "timer-2026-11-21"),
        (.hour, "Asia/Kathmandu", "2026-11-22T09:05:00Z", "timer-2026-11-22T14"),
        // Berlin's clock is put back from three to two at 01:00 UTC, and forward from two to three.
        (.hour, "Europe/Berlin", "2026-10-24T23:59:59Z", "timer-2026-10-25T01"),
        (.hour, "Europe/Berlin", "2026-10-25T00:00:00Z", "timer-2026-10-25T02+02:00"),
        (.hour, "Europe/Berlin", "2026-10-25T00:59:59Z", "timer-2026-10-25T02+02:00"),
        (.hour, "Europe/Berlin", "2026-10-25T01:00:00Z", "timer-2026-10-25T02+01:00"),
        (.minute, "Europe/Berlin", "2026-10-25T01:05:00Z", "timer-2026-10-25T02:05+01:00"),
        (.hour, "Europe/Berlin", "2026-10-25T02:00:00Z", "timer-2026-10-25T03"),
        (.day, "Europe/Berlin", "2026-10-25T01:00:00Z", "timer-2026-10-25"),
        (.hour, "Europe/Berlin", "2026-03-29T00:59:59Z", "timer-2026-03-29T01"),
        (.hour, "Europe/Berlin", "2026-03-29T01:00:00Z", "timer-2026-03-29T03"),
        (.hour, "America/New_York", "2026-11-01T05:30:00Z", "timer-2026-11-01T01-04:00"),
        (.hour, "America/New_York", "2026-11-01T06:30:00Z", "timer-2026-11-01T01-05:00"),
        // Half an hour only, from two to half past one.
        (.hour, "Australia/Lord_Howe", "2026-04-04T14:00:00Z", "timer-2026-04-05T01+11:00"),
        (.hour, "Australia/Lord_Howe", "2026-04-04T15:00:00Z", "timer-2026-04-05T01+10:30"),
        (.minute, "Australia/Lord_Howe", "2026-04-04T14:29:00Z", "timer-2026-04-05T01:29"),
    ])
    func `a moment is named by the machine's clock`(
        unit: TimerOccurrence.Unit, zone: String, moment: String, key: String
    ) throws {
        #expect(
            TimerOccurrence.key(by: unit, at: try Self.moment(moment), zone: try Self.zone(zone)) == key)
    }

    /// Every hour of a year has a name of its own, and all of its minutes have the same.
    @Test(arguments: ["Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia"])
    func `no hour is skipped and none comes twice`(name: String) throws {
        let zone = try Self.zone(name)
        let start = try Self.moment("2026-01-01T00:00:00Z")
        var keys: Set<String> = []
        for hour in 0..<(365 * 24) {
            let moment = start + .seconds(hour * 3600)
            let key = TimerOccurrence.key(by: .hour, at: moment, zone: zone)
            #expect(keys.insert(key).inserted, "\(key)")
            #expect(TimerOccurrence.key(by: .hour, at: moment + .seconds(3599), zone: zone) == key)
        }
    }

    @Test(arguments: [
        (TimerOccurrence.Unit.day, "2026-11-22T23:59:59Z", true), (.day, "2026-11-23T00:00:00Z", false),
        (.hour, "2026-11-22T09:59:00Z", true), (.hour, "2026-11-22T10:00:00Z", false),
        (.minute, "2026-11-22T09:05:59Z", true), (.minute, "2026-11-22T09:06:00Z", false),
        // The clock was set back: nothing is known.
        (.minute, "2026-11-22T09:00:00Z", true),
    ])
    func `a period that began before a restore is not known`(
        unit: TimerOccurrence.Unit, now: String, isUnknown: Bool
    ) throws {
        let gap = RestoreGap(
            madeAt: try Self.moment("2026-11-21T08:00:00Z"), restoredAt: try Self.moment("2026-11-22T09:05:30Z"))
        let period = { TimerOccurrence.key(by: unit, at: $0, zone: .gmt) }
        #expect(gap.reaches(into: period, at: try Self.moment(now)) == isUnknown)
    }
}
