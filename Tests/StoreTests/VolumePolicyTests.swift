import Foundation
import Model
import Store
import Testing

/// `noon` is 2027-01-15 08:00 UTC, a Friday.
struct VolumePolicyTests {
    private static let day = Duration.seconds(86_400)

    private static func request(
        reach: Int, times: Int = 10, atLeast: Int = 1, actor: String? = "anna", previous: Int? = nil,
        growth: Double? = nil
    ) -> VolumeRequest {
        VolumeRequest(
            brake: Configuration.VolumeBrake(times: times, atLeast: atLeast, maxGrowthPercent: growth),
            campaign: "news", actor: actor, reach: reach,
            previous: previous.map { VolumeRequest.Previous(run: 7, reach: $0) })
    }

    /// So many days ago, so many pushes.
    private static func history(_ days: [(ago: Int, pushes: Int)]) -> [VolumePolicy.Entry] {
        days.map { VolumePolicy.Entry(at: noon - day * $0.ago, pushes: $0.pushes) }
    }

    private static func weeks(_ pushes: Int...) -> [(Int, Int)] {
        pushes.enumerated().map { (($0.offset + 1) * 7, $0.element) }
    }

    @Test(
        arguments: [
            // Ten times as many go, one more does not.
            (weeks(100, 100, 100), 1_000, false), (weeks(100, 100, 100), 1_001, true),
            // The median, whatever one day was.
            (weeks(100, 90_000, 110), 1_101, true), (weeks(100, 90_000, 110), 1_100, false),
            (weeks(100, 200, 300, 400), 2_500, false), (weeks(100, 200, 300, 400), 2_501, true),
            // Other weekdays do not count beside three of the same.
            (weeks(100, 100, 100) + [(1, 9_000), (2, 9_000), (3, 9_000)], 1_001, true),
            // With fewer all days do; with fewer than three nothing is usual.
            ([(7, 100), (1, 300), (3, 300)], 3_001, true), ([(7, 100), (1, 300), (3, 300)], 3_000, false),
            ([(7, 1), (1, 1)], 1_000_000, false), ([], 1_000_000, false),
            // A day without a push says nothing, and neither does what is older than eight weeks.
            (weeks(100, 100, 0), 1_000_000, false), ([(7, 100), (14, 100), (63, 100)], 1_000_000, false),
            ([(7, 100), (14, 100), (56, 100)], 1_001, true),
        ] as [([(ago: Int, pushes: Int)], Int, Bool)])
    func `more than so many times the usual waits`(days: [(ago: Int, pushes: Int)], reach: Int, isHeld: Bool) {
        let policy = VolumePolicy(Self.request(reach: reach), now: noon)
        #expect((policy.hold(campaign: Self.history(days), actor: []) != nil) == isHeld)
        // The same of whoever starts it; a daemon has no usual of its own.
        #expect((policy.hold(campaign: [], actor: Self.history(days)) != nil) == isHeld)
        let daemon = VolumePolicy(Self.request(reach: reach, actor: nil), now: noon)
        #expect(daemon.hold(campaign: [], actor: Self.history(days)) == nil)
    }

    @Test func `what went today counts, and what is about to go as much as this`() {
        let usual = Self.history(Self.weeks(100, 100, 100))
        func hold(_ reach: Int, _ today: [VolumePolicy.Entry], atLeast: Int = 1) -> VolumeHold? {
            VolumePolicy(Self.request(reach: reach, atLeast: atLeast), now: noon)
                .hold(campaign: usual + today, actor: [])
        }
        let sent = VolumePolicy.Entry(at: noon - .seconds(3_600), pushes: 900)
        let open = VolumePolicy.Entry(at: noon, pushes: 0, isOpen: true)
        #expect(hold(100, [sent]) == nil && hold(101, [sent]) != nil)
        #expect(hold(500, [open]) == nil && hold(501, [open]) != nil)
        #expect(hold(101, [sent], atLeast: 1_002) == nil)
        let weighed = VolumePolicy.Entry(at: noon, pushes: 0, isOpen: true, weighed: 900)
        #expect(hold(100, [weighed]) == nil && hold(101, [weighed]) != nil)
        // Days on which nobody let anything go are no usual days.
        let left = (1...40).map {
            VolumePolicy.Entry(at: noon - .seconds(86_400 * $0), pushes: 0, isOpen: true, weighed: 100_000)
        }
        #expect(hold(1_001, left) != nil)
        // Yesterday's, a second before midnight.
        #expect(hold(101, [VolumePolicy.Entry(at: noon - .seconds(8 * 3_600 + 1), pushes: 900)]) == nil)
    }

    /// 08:00 UTC is midnight on the west coast of America: what went an hour before was yesterday's.
    @Test func `days are those of the zone`() throws {
        var request = Self.request(reach: 101)
        request.zone = try #require(TimeZone(identifier: "America/Los_Angeles"))
        let usual = Self.history(Self.weeks(100, 100, 100))
        let sent = VolumePolicy.Entry(at: noon - .seconds(3_600), pushes: 900)
        #expect(VolumePolicy(request, now: noon).hold(campaign: usual + [sent], actor: []) == nil)
    }

    @Test(
        arguments: [
            (1_000, 1_500, false), (1_000, 1_501, true), (0, 1, true), (1_000, 900, false), (1, 99, true),
            (1, 9, false),
        ])
    func `an audience that grew beyond the bound waits`(before: Int, reach: Int, isHeld: Bool) {
        let request = Self.request(reach: reach, atLeast: before == 1 ? 10 : 1, previous: before, growth: 50)
        #expect((VolumePolicy(request, now: noon).hold(campaign: [], actor: []) != nil) == isHeld)
    }

    @Test func `the reason has the figures, and says what to do`() {
        let usual = Self.history(Self.weeks(1_900, 2_000, 2_100))
        let much = VolumePolicy(Self.request(reach: 120_000), now: noon)
        #expect(
            much.hold(campaign: usual, actor: [])?.reason(run: 9)
                == "would send 120,000; usual for news on Fridays is 2,000 (median of the last 3); volume_brake "
                + "allows 10 times as many; `fanfare resume 9` sends it, `fanfare cancel 9` ends the run")
        let before = VolumePolicy.Entry(at: noon, pushes: 119_000)
        let last = VolumePolicy(Self.request(reach: 1_000), now: noon)
        #expect(
            last.hold(campaign: [], actor: Self.history([(1, 2_000), (2, 2_000), (3, 2_000)]) + [before])?.reason(
                run: 9
            )
            .hasPrefix(
                "would send 1,000, 120,000 with today's earlier pushes; usual for anna a day is 2,000 (median of the "
                    + "last 3)") == true)
        let grown = VolumePolicy(Self.request(reach: 3_000, previous: 1_000, growth: 50), now: noon)
        #expect(
            grown.hold(campaign: [], actor: [])?.reason(run: 9).hasPrefix(
                "would send 3,000, and run 7 reached 1,000; volume_brake allows growth by 50 %; ") == true)
    }

    @Test func `runs of about today are asked for apart from those before`() {
        let spans = VolumePolicy(Self.request(reach: 1), now: noon).spans
        #expect(spans.count == 2 && spans[0].lowerBound == spans[1].upperBound)
        #expect(spans[0].contains(noon) && spans[1].contains(noon - .seconds(86_400 * 7 * 8)))
    }

    @Test(
        arguments: [
            // reach, ceiling, passed over, the most
            (40, nil, false, 50), (50, nil, false, 50), (51, nil, false, 100), (98, nil, false, 100),
            (101, nil, false, nil),
            (101, 103, false, 103), (101, 103, true, 103), (101, nil, true, nil),
        ] as [(Int, Int?, Bool, Int?)])
    func `a run may turn out to be for as many as its rule is for`(
        reach: Int, ceiling: Int?, isPassedOver: Bool, most: Int?
    ) {
        let rules = ApprovalRules(
            rules: [.init(above: 50, needs: 1), .init(above: 100, needs: 2)], ceiling: ceiling)
        #expect(rules.most(forReach: reach, isPassedOver: isPassedOver) == most)
    }
}
