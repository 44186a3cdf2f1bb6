import Foundation
import Model
import Testing

struct QuietTimesTests {
    static let berlin = "Europe/Berlin"

    static func quiet(
        _ from: String, _ to: String, unknownZone: Schedule.UnknownZone? = .drop, zone: Schedule.Zone? = nil
    ) throws -> QuietTimes {
        var schedule = Schedule(trigger: .none)
        schedule.zone = zone
        schedule.unknownZone = unknownZone
        schedule.quietHours = .init(fromMinute: try minute(from), toMinute: try minute(to), policy: .defer)
        return try #require(QuietTimes(schedule))
    }

    static func minute(_ text: String) throws -> Int {
        let parts = text.split(separator: ":").compactMap { Int($0) }
        return try #require(parts.first) * 60 + #require(parts.last)
    }

    static func moment(_ text: String) throws -> Timestamp {
        Timestamp(try Date(text, strategy: .iso8601))
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var zone: String
        var from, to: String
        var now: String
        /// Nil: nobody sleeps.
        var end: String?
        var testDescription: String { "\(from) to \(to) in \(zone), \(now)" }

        init(_ zone: String, _ from: String, _ to: String, at now: String, until end: String?) {
            self.zone = zone
            self.from = from
            self.to = to
            self.now = now
            self.end = end
        }
    }

    static let ordinaryNights = [
        Row(berlin, "22:00", "08:00", at: "2026-12-01T20:59:59Z", until: nil),
        Row(berlin, "22:00", "08:00", at: "2026-12-01T21:00:00Z", until: "2026-12-02T07:00:00Z"),
        Row(berlin, "22:00", "08:00", at: "2026-12-02T06:59:59Z", until: "2026-12-02T07:00:00Z"),
        Row(berlin, "22:00", "08:00", at: "2026-12-02T07:00:00Z", until: nil),
        Row(berlin, "00:00", "06:30", at: "2026-07-01T22:00:00Z", until: "2026-07-02T04:30:00Z"),
        Row("America/New_York", "22:00", "08:00", at: "2026-12-02T12:00:00Z", until: "2026-12-02T13:00:00Z"),
        Row("Asia/Kolkata", "22:00", "08:00", at: "2026-12-01T16:30:00Z", until: "2026-12-02T02:30:00Z"),
        Row("Pacific/Kiritimati", "22:00", "08:00", at: "2026-12-01T08:00:00Z", until: "2026-12-01T18:00:00Z"),
        Row("GMT", "22:00", "08:00", at: "1969-12-31T23:00:00Z", until: "1970-01-01T08:00:00Z"),
    ]

    /// In Berlin 2:00 becomes 3:00 on 2027-03-28 and 3:00 becomes 2:00 on 2026-10-25, both at 1:00 UTC. On Lord Howe the
    /// clock moves by half an hour; Apia left a whole day out at the end of 2011.
    static let changesOfTheClock = [
        Row(berlin, "22:00", "08:00", at: "2027-03-27T22:00:00Z", until: "2027-03-28T06:00:00Z"),
        Row(berlin, "22:00", "08:00", at: "2026-10-24T21:00:00Z", until: "2026-10-25T07:00:00Z"),
        // The gap swallows the end: it is 1:59:59, then 3:00.
        Row(berlin, "22:00", "02:30", at: "2027-03-28T00:59:59Z", until: "2027-03-28T01:00:00Z"),
        Row(berlin, "22:00", "02:30", at: "2027-03-28T01:00:00Z", until: nil),
        // It swallows the beginning.
        Row(berlin, "02:15", "04:00", at: "2027-03-28T00:59:59Z", until: nil),
        Row(berlin, "02:15", "04:00", at: "2027-03-28T01:00:00Z", until: "2027-03-28T02:00:00Z"),
        // It swallows all of it.
        Row(berlin, "02:00", "03:00", at: "2027-03-28T01:00:00Z", until: nil),
        // 2:30 comes twice: quiet until the first, and again from 2:00 on.
        Row(berlin, "22:00", "02:30", at: "2026-10-24T23:00:00Z", until: "2026-10-25T00:30:00Z"),
        Row(berlin, "22:00", "02:30", at: "2026-10-25T00:45:00Z", until: nil),
        Row(berlin, "22:00", "02:30", at: "2026-10-25T01:10:00Z", until: "2026-10-25T01:30:00Z"),
        // 3:00 is 2:00 again.
        Row(berlin, "22:00", "03:00", at: "2026-10-24T23:00:00Z", until: "2026-10-25T02:00:00Z"),
        Row(berlin, "02:00", "03:00", at: "2026-10-25T00:00:00Z", until: "2026-10-25T02:00:00Z"),
        Row("America/New_York", "22:00", "08:00", at: "2027-03-14T03:00:00Z", until: "2027-03-14T12:00:00Z"),
        Row("Australia/Lord_Howe", "22:00", "06:00", at: "2026-10-03T12:00:00Z", until: "2026-10-03T19:00:00Z"),
        Row("Pacific/Apia", "22:00", "08:00", at: "2011-12-30T09:00:00Z", until: "2011-12-30T18:00:00Z"),
    ]

    @Test(arguments: ordinaryNights + changesOfTheClock)
    func `quiet hours end by the clock on the wall`(row: Row) throws {
        let state = try Self.quiet(row.from, row.to).state(inZone: row.zone, at: Self.moment(row.now))
        if let end = row.end {
            #expect(state == .quiet(until: try Self.moment(end)))
        } else {
            #expect(state.isAwake)
        }
    }

    /// Whatever the clock does, the end is the first moment that is not quiet, and the beginning the first that is.
    @Test(arguments: ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"])
    func `the end is the first moment awake, and the beginning the first quiet one, all year round`(zone: String) throws
    {
        let quiet = try Self.quiet("21:30", "02:30")
        var moment = try Self.moment("2026-01-01T00:00:00Z")
        let end = try Self.moment("2027-01-01T00:00:00Z")
        while moment < end {
            switch quiet.state(inZone: zone, at: moment) {
            case .quiet(let wake):
                #expect(wake > moment)
                #expect(quiet.state(inZone: zone, at: wake).isAwake)
                #expect(quiet.state(inZone: zone, at: wake - .milliseconds(1)) == .quiet(until: wake))
            case .awake(let night):
                #expect(night > moment)
                #expect(!quiet.state(inZone: zone, at: night).isAwake)
                #expect(quiet.state(inZone: zone, at: night - .milliseconds(1)) == .awake(until: night))
            case .zoneUnknown: Issue.record("\(zone) is not known")
            }
            moment = moment + .seconds(47 * 60)
        }
    }

    @Test(arguments: [nil, "Nowhere/AtAll", ""]) func `a zone nobody knows is the one to assume`(zone: String?) throws {
        let now = try Self.moment("2026-12-01T15:00:00Z")
        let tokyo = QuietTimes.State.quiet(until: try Self.moment("2026-12-01T23:00:00Z"))
        #expect(try Self.quiet("22:00", "08:00").state(inZone: zone, at: now) == .zoneUnknown)
        let named = try Self.quiet("22:00", "08:00", unknownZone: .named("Asia/Tokyo"))
        #expect(named.state(inZone: zone, at: now) == tokyo)
        #expect(named.state(inZone: Self.berlin, at: now).isAwake)
        let own = try Self.quiet("22:00", "08:00", unknownZone: nil, zone: .named("Asia/Tokyo"))
        #expect(own.state(inZone: zone, at: now) == tokyo)
    }

    @Test func `without hours nothing is quiet`() {
        var schedule = Schedule(trigger: .none)
        #expect(QuietTimes(nil) == nil)
        #expect(QuietTimes(schedule) == nil)
        schedule.quietHours = .init(fromMinute: 60, toMinute: 60, policy: .drop)
        #expect(QuietTimes(schedule) == nil)
    }
}

extension QuietTimes.State {
    fileprivate var isAwake: Bool {
        if case .awake = self { return true }
        return false
    }
}
