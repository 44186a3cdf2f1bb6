import Model
import Store
import Testing

/// Which finished runs are a success.
@Suite struct RunSuccessTests {
    private typealias Row = (
        accepted: Int, rejected: Int, unknown: Int, suppressed: [String: Int], problem: String?
    )

    private static let rows: [Row] = [
        (10, 0, 0, [:], nil),
        (5, 5, 0, [:], nil),
        (4, 6, 0, [:], "6 of 10 pushes were rejected, 60 % (success.max_rejected is 50 %)"),
        (2_701, 0, 27_299, [:], "27,299 of 30,000 pushes ended unknown, 91 % (success.max_unknown is 50 %)"),
        (
            0, 150, 0, [:],
            "0 of 150 pushes were accepted: 150 were rejected, 0 ended unknown (success.min_accepted is 1)"
        ),
        (0, 0, 0, [:], "no device was reached: the audience selected none"),
        (
            0, 0, 0, ["payload_too_large": 1_943],
            "no device was reached: all 1,943 were left out (payload_too_large 1,943)"
        ),
        // Left out on purpose: a newer push took their place, or the silent budget was used up.
        (0, 0, 0, ["coalesced": 20], nil),
        (0, 0, 0, ["coalesced": 19, "expired": 1], nil),
        (0, 14, 0, ["silent_budget": 4_690], nil),
        (
            0, 14, 0, ["silent_budget": 9],
            "0 of 14 pushes were accepted: 14 were rejected, 0 ended unknown (success.min_accepted is 1)"
        ),
        (
            0, 0, 0, ["expired": 11, "frequency_cap": 9],
            "no device was reached: all 20 were left out (expired 11, frequency_cap 9)"
        ),
        (1, 150, 0, ["holdout": 9], "150 of 160 pushes were rejected, 93.8 % (success.max_rejected is 50 %)"),
        (1, 0, 0, ["holdout": 99], nil),
    ]

    private static func problem(_ row: Row, _ limits: Configuration.SuccessLimits) -> String? {
        var counts = DeliveryCounts()
        (counts.accepted, counts.rejected, counts.unknown) = (row.accepted, row.rejected, row.unknown)
        counts.suppressed = row.suppressed.values.reduce(0, +)
        counts.audience = row.accepted + row.rejected + row.unknown + counts.suppressed
        let reasons = row.suppressed.sorted { $0.key < $1.key }.map {
            Report.Reason(status: 0, reason: $0.key, count: $0.value)
        }
        return RunSuccess(limits).problem(counts, suppressed: reasons)
    }

    @Test func `a run that reached no device, or most of whose pushes failed, is no success`() {
        for row in Self.rows { #expect(Self.problem(row, Configuration.SuccessLimits()) == row.problem) }
    }

    @Test func `devices that are gone are no failure of the run, unless there was nothing else`() {
        var counts = DeliveryCounts()
        (counts.accepted, counts.rejected, counts.unknown, counts.audience) = (800, 1_200, 0, 2_000)
        let success = RunSuccess(Configuration.SuccessLimits())
        #expect(success.problem(counts, suppressed: [], gone: 1_200) == nil)
        #expect(success.problem(counts, suppressed: [])?.contains("max_rejected") == true)
        (counts.accepted, counts.unknown, counts.audience) = (10, 20, 1_230)
        #expect(
            success.problem(counts, suppressed: [], gone: 1_200)?.hasPrefix("20 of 30 pushes ended unknown") == true)
        (counts.accepted, counts.unknown, counts.audience) = (0, 0, 1_200)
        #expect(success.problem(counts, suppressed: [], gone: 1_200)?.contains("min_accepted") == true)
    }

    @Test func `a run says how many of its pushes may have arrived after a lost response`() {
        var counts = DeliveryCounts()
        (counts.suppressed, counts.audience) = (2, 2)
        let success = RunSuccess(Configuration.SuccessLimits())
        let expired = [Report.Reason(status: 0, reason: "expired", count: 2)]
        let few =
            "0 of 2 pushes were accepted for certain, 2 may have arrived: 0 were rejected, 0 ended unknown, "
            + "2 were suppressed after an attempt (success.min_accepted is 1)"
        #expect(success.problem(counts, suppressed: expired, attempted: 2, mayHaveArrived: 2) == few)
        #expect(!RunSuccess.hasNoRequest(counts, reason: few))
        let none = "no device was reached: all 2 were left out (expired 2)"
        #expect(success.problem(counts, suppressed: expired) == none)
        #expect(RunSuccess.hasNoRequest(counts, reason: none))
        (counts.accepted, counts.rejected, counts.suppressed, counts.audience) = (1, 9, 0, 10)
        let many =
            "9 of 10 pushes were rejected, 90 % (success.max_rejected is 50 %); 7 that ended rejected or suppressed may "
            + "have arrived"
        #expect(success.problem(counts, suppressed: [], mayHaveArrived: 7) == many)
        (counts.accepted, counts.rejected) = (9, 1)
        #expect(success.problem(counts, suppressed: [], mayHaveArrived: 1) == nil)
    }

    @Test func `the limits are the configuration's`() {
        let none = Configuration.SuccessLimits(minAccepted: 0, maxRejectedPercent: 100, maxUnknownPercent: 100)
        for row in Self.rows { #expect(Self.problem(row, none) == nil) }
        let strict = Configuration.SuccessLimits(minAccepted: 11, maxRejectedPercent: 1, maxUnknownPercent: 1)
        let fallingShort = Self.rows.filter { row in
            row.accepted < 11 && !["coalesced", "holdout"].contains { row.suppressed[$0] ?? 0 > 9 }
                && row.suppressed["silent_budget"] ?? 0 < 100
        }
        #expect(fallingShort.count >= 8)
        for row in fallingShort { #expect(Self.problem(row, strict) != nil) }
    }
}
