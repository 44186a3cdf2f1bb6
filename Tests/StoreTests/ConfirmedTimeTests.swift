import Model
import Store
import Testing

/// Which time may be acted on irrevocably after somebody set the wall clock.
struct `The confirmed time` {
    private static let noon = Timestamp(seconds: 1_800_000_000)

    /// A clock that is set at moments of uptime: the steps on record, and what it shows.
    private func shown(_ sets: [(at: Int, by: Int)], now: Int) -> (now: Timestamp, steps: [ClockStep]) {
        var (off, steps) = (Duration.zero, [ClockStep]())
        for set in sets {
            steps.append(ClockStep(before: Self.noon + .seconds(set.at) + off, by: .seconds(set.by)))
            off += .seconds(set.by)
        }
        return (Self.noon + .seconds(now) + off, steps)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var sets: [(at: Int, by: Int)]
        var now: Int
        /// By how much the clock is not believed.
        var lag: Int
        var wait: Int
    }

    static let rows = [
        Row(testDescription: "never set", sets: [], now: 50, lag: 0, wait: 0),
        Row(testDescription: "a small step", sets: [(0, 10)], now: 0, lag: 0, wait: 0),
        Row(testDescription: "just beyond", sets: [(0, 11)], now: 0, lag: 11, wait: 300),
        Row(testDescription: "small ones that add up", sets: [(0, 9), (5, 9)], now: 10, lag: 18, wait: 295),
        Row(testDescription: "a month, not confirmed yet", sets: [(0, 2_592_000)], now: 299, lag: 2_592_000, wait: 1),
        Row(testDescription: "a month, confirmed", sets: [(0, 2_592_000)], now: 300, lag: 0, wait: 0),
        Row(testDescription: "taken back", sets: [(0, 18_000), (4, -18_000)], now: 5, lag: 0, wait: 0),
        Row(testDescription: "taken back in part", sets: [(0, 18_000), (4, -17_000)], now: 5, lag: 1000, wait: 299),
        Row(
            testDescription: "taken back after it was confirmed", sets: [(0, 18_000), (400, -18_000)], now: 401, lag: 0,
            wait: 0),
        Row(testDescription: "set back", sets: [(0, -18_000)], now: 1, lag: 0, wait: 0),
        Row(testDescription: "set back, then right", sets: [(0, -18_000), (60, 18_000)], now: 61, lag: 0, wait: 0),
        Row(
            testDescription: "confirmed once, and set again", sets: [(0, 3600), (400, 3600)], now: 401, lag: 3600,
            wait: 299),
    ]

    @Test(arguments: rows) func `follows a step forward only once it is confirmed`(row: Row) {
        let (now, steps) = shown(row.sets, now: row.now)
        let time = ConfirmedTime(now, after: steps)
        #expect(time.lag == .seconds(row.lag) && time.wait == .seconds(row.wait), "\(time)")
        #expect(time.moment == now - .seconds(row.lag))
    }

    @Test func `is the clock's where another start of the machine was further ahead`() {
        let step = ClockStep(before: Self.noon, by: .seconds(86_400))
        #expect(ConfirmedTime(Self.noon + .seconds(600), after: [step]).lag == .zero)
    }

    @Test func `goes back with the step, so that no time passes twice as fast or stands still`() {
        let (first, steps) = shown([(0, 7200)], now: 10)
        let (second, _) = shown([(0, 7200)], now: 20)
        #expect(ConfirmedTime(second, after: steps).moment - ConfirmedTime(first, after: steps).moment == .seconds(10))
    }
}
