import Campaigns
import Model
import Testing
import Web

struct ChartAxisTests {
    @Test(
        arguments: [
            (0.0, [0, 1]), (1, [0, 1]), (3, [0, 1, 2, 3]), (7, [0, 2, 4, 6, 8]), (100, [0, 20, 40, 60, 80, 100]),
            (999, [0, 200, 400, 600, 800, 1000]), (1_000_001, [0, 500_000, 1_000_000, 1_500_000]),
        ] as [(Double, [Double])])
    func `counts are marked at round whole numbers from zero to the most`(max: Double, marks: [Double]) {
        #expect(Ticks.linear(to: max) == marks)
    }

    @Test(arguments: [(1.0, 1.0), (12, 480), (0.1, 1e7), (1000, 1000), (9.99, 10.01)])
    func `a logarithmic axis holds its values between round marks`(low: Double, high: Double) throws {
        let marks = Ticks.logarithmic(from: low, to: high)
        let first = try #require(marks.first)
        let last = try #require(marks.last)
        #expect(first <= low && high <= last * 1.000_001 && marks == marks.sorted() && (2...9).contains(marks.count))
    }

    @Test(arguments: [(0.0, 0.0), (1, 1), (0.97, 0.99), (0.9991, 0.9993), (0, 1), (0.2, 0.21)])
    func `an axis of shares holds its values and never leaves 0 to 1`(low: Double, high: Double) throws {
        let marks = Ticks.shares(from: low, to: high)
        let first = try #require(marks.first)
        let last = try #require(marks.last)
        #expect(first <= low + 1e-9 && last >= high - 1e-9 && first >= 0 && last <= 1 + 1e-9 && first < last)
        #expect((2...8).contains(marks.count))
    }

    @Test(
        arguments: [
            (0, "0"), (1, "1"), (999, "999"), (1500, "1.5k"), (20_000, "20k"), (2_500_000, "2.5M"), (9e18, "9000P"),
        ] as [(Double, String)])
    func `numbers of an axis are short`(value: Double, text: String) { #expect(ShortNumber.text(value) == text) }

    @Test(arguments: [
        (10, ["09:00:00", "09:00:02", "09:00:04", "09:00:06", "09:00:08", "09:00:10"]),
        (600, ["09:00", "09:02", "09:04", "09:06", "09:08", "09:10"]),
        (86_400, ["12:00", "18:00", "22 Nov", "06:00"]),
        (10 * 86_400, ["23 Nov", "25 Nov", "27 Nov", "29 Nov", "1 Dec"]),
    ])
    func `times are marked where a person looks for them`(seconds: Int, labels: [String]) {
        let from = Timestamp(milliseconds: 1_795_251_600_000)
        #expect(from.iso8601 == "2026-11-21T09:00:00Z")
        #expect(TimeAxis(from: from, to: from + .seconds(seconds)).marks.map(\.label) == labels)
    }

    @Test func `the zone and the days are named`() {
        let from = Timestamp(milliseconds: 1_795_251_600_000)
        #expect(TimeAxis(from: from, to: from + .seconds(60)).note == "Times in UTC, 21 Nov 2026.")
        #expect(TimeAxis(from: from, to: from + .seconds(86_400)).note == "Times in UTC, 21 Nov 2026 to 22 Nov 2026.")
        #expect(TimeAxis(from: from, to: from).marks.count <= 6)
        #expect(TimeAxis(from: from, to: from + .seconds(4_000_000_000)).marks.count <= 6)
    }

    /// From Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
    @Test(arguments: [
        (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718),
        (20, 20, 0.8389, 1),
    ])
    func `the interval of a share is Wilson's`(accepted: Int, sent: Int, from: Double, to: Double) throws {
        let interval = try #require(AcceptedShare(accepted: accepted, sent: sent).interval)
        #expect(abs(interval.lowerBound - from) < 0.0001 && abs(interval.upperBound - to) < 0.0001, "\(interval)")
    }

    @Test func `what was never sent has no part in a share`() {
        #expect(AcceptedShare(accepted: 0, sent: 0).share == nil && AcceptedShare(accepted: 0, sent: 0).interval == nil)
        let counts = ChartTests.counts(accepted: 8, rejected: 1, unknown: 1, suppressed: 90, pending: 7, leased: 3)
        #expect(AcceptedShare(counts).share == 0.8)
    }
}
