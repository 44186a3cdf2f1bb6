import Model
import Testing

struct WrittenDurationTests {
    @Test(
        arguments: [
            ("500ms", .milliseconds(500)), ("90s", .seconds(90)), ("45m", .seconds(2700)), ("4h", .seconds(14_400)),
            ("30d", .seconds(2_592_000)), ("2w", .seconds(1_209_600)), ("1h30m", .seconds(5400)), ("0", .zero),
            ("0s", .zero), ("", nil), ("90", nil), ("h", nil), ("1.5h", nil), ("-1h", nil), ("1 h", nil), ("1x", nil),
            ("1h30", nil), ("99999999999999999999s", nil), ("9223372036854775807w", nil),
            ("9223372036854775s999999h", nil),
        ] as [(String, Duration?)])
    func `numbers with units are read, everything else is refused`(text: String, duration: Duration?) {
        #expect(WrittenDuration.parse(text) == duration)
    }

    @Test(arguments: [
        (Duration.zero, "0s"), (.milliseconds(250), "250ms"), (.milliseconds(45_250), "45s"), (.seconds(5400), "1h30m"),
        (.seconds(187_200), "2d4h"), (.seconds(3_456_000), "40d"), (.seconds(3601), "1h1s"), (.seconds(-5), "0s"),
    ])
    func `a duration prints its two largest units`(duration: Duration, text: String) {
        #expect(WrittenDuration.text(duration) == text)
    }
}

struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (1_793_491_200_000, "2026-11-01T00:00:00Z"), (500, "1970-01-01T00:00:00.500Z"),
            (7, "1970-01-01T00:00:00.007Z"), (1_879_601_217_024, "2029-07-24T15:26:57.024Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func `a moment prints as ISO 8601 to the millisecond`(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).iso8601 == text)
    }

    @Test(arguments: [(1999, 1), (2000, 2), (-1, -1), (-1000, -1), (-1001, -2), (0, 0)] as [(Int64, Int64)])
    func `whole seconds are rounded down`(milliseconds: Int64, seconds: Int64) {
        #expect(Timestamp(milliseconds: milliseconds).seconds == seconds)
    }

    @Test func `moments and durations add up`() {
        let moment = Timestamp(milliseconds: 10_000)
        #expect(moment + .seconds(2) == Timestamp(milliseconds: 12_000))
        #expect(moment - .milliseconds(1) == Timestamp(milliseconds: 9999))
        #expect(moment - Timestamp(milliseconds: 4000) == .seconds(6))
        #expect(Timestamp(milliseconds: 4000) < moment)
        #expect(Timestamp(moment.date) == moment)
    }
}
