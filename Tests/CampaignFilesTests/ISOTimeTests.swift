import CampaignFiles
import Model
import Testing

struct ISOTimeTests {
    @Test(
        arguments: [
            ("1970-01-01", 0), ("2026-11-01", 1_793_491_200_000), ("2024-02-29T12:34:56Z", 1_709_210_096_000),
            ("2024-02-29 12:34", 1_709_210_040_000), ("2026-11-01T00:00:00.5Z", 1_793_491_200_500),
            ("2026-11-01T00:00:00.123456789Z", 1_793_491_200_123), ("2026-11-01T02:00:00+02:00", 1_793_491_200_000),
            ("2026-10-31T14:30:00-0930", 1_793_491_200_000), ("2026-11-01t05:00z", 1_793_509_200_000),
            ("1969-12-31T23:59:59Z", -1000), ("2000-03-01", 951_868_800_000),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000),
            ("2026-11-01T02+02", nil), ("2026-02-29", nil), ("2100-02-29", nil), ("2026-13-01", nil),
            ("2026-00-01", nil),
            ("2026-11-01T24:00", nil), ("2026-11-01T", nil), ("26-11-01", nil), ("2026-11-01T00:00:00.Z", nil),
            ("2026-11-01Z", nil), ("2026-11-01T00:00:00+", nil), ("now", nil), ("", nil), ("2026-11-01T00:00 Z", nil),
        ] as [(String, Int64?)])
    func `dates and times are read as UTC milliseconds`(text: String, milliseconds: Int64?) {
        #expect(ISOTime.parse(text)?.milliseconds == milliseconds)
    }

    @Test func `what a timestamp prints reads as the same moment`() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<1000 {
            let moment = Timestamp(milliseconds: Int64.random(in: 0...10_000_000_000_000, using: &random))
            #expect(ISOTime.parse(moment.iso8601) == moment)
        }
    }
}
