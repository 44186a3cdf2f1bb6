import Model
import Store
import Testing

/// Minutes count from noon, when the run was planned and made.
struct LatePolicyTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var lateByMax: Duration? = .seconds(600)
        var createdAt = 0
        /// When an owner was last heard of.
        var heardAt: Int?
        var isFrozen = true
        var isTest = false
        var left = 5
        /// When the first of those that wait is due; nil: some wait for nothing.
        var firstDue: Int?
        /// When a hold ends that keeps back what is left; nil: none does.
        var heldUntil: Int?
        var now: Int
        /// Since when it was due; nil: not late.
        var lateFrom: Int?
    }

    static let rows: [Row] = [
        Row(testDescription: "left nine hours ago", heardAt: 1, now: 541, lateFrom: 0),
        Row(testDescription: "just as long ago as allowed", heardAt: 1, now: 11),
        Row(testDescription: "a minute longer", heardAt: 1, now: 12, lateFrom: 0),
        Row(testDescription: "paced over hours and taken over at once", heardAt: 300, now: 301),
        Row(testDescription: "never begun, and found in time", now: 10),
        Row(testDescription: "never begun, and found too late", now: 11, lateFrom: 0),
        Row(testDescription: "made at the last moment, and begun at once", createdAt: 9, now: 12),
        Row(testDescription: "made at the last moment, and then forgotten", createdAt: 9, now: 20, lateFrom: 0),
        Row(testDescription: "an hour without a limit of its own", lateByMax: nil, heardAt: 1, now: 61),
        Row(testDescription: "more than an hour without one", lateByMax: nil, heardAt: 1, now: 62, lateFrom: 0),
        Row(testDescription: "waiting for tonight's wave", heardAt: 1, firstDue: 600, now: 540),
        Row(testDescription: "tonight's wave, found in time", heardAt: 1, firstDue: 600, now: 610),
        Row(testDescription: "tonight's wave, missed", heardAt: 1, firstDue: 600, now: 611, lateFrom: 600),
        Row(testDescription: "a retry, due while somebody still sent", heardAt: 60, firstDue: 30, now: 65),
        Row(testDescription: "a retry, and nobody came", heardAt: 60, firstDue: 30, now: 71, lateFrom: 30),
        Row(testDescription: "left while freezing", heardAt: 1, isFrozen: false, now: 30, lateFrom: 0),
        Row(testDescription: "left while freezing, taken over at once", heardAt: 1, isFrozen: false, now: 2),
        Row(testDescription: "left in a hold of three hours", heardAt: 65, heldUntil: 245, now: 240),
        Row(testDescription: "left in a hold, found in time behind it", heardAt: 65, heldUntil: 245, now: 255),
        Row(testDescription: "left in a hold, found too late", heardAt: 65, heldUntil: 245, now: 256, lateFrom: 245),
        Row(testDescription: "a wave behind the hold", heardAt: 65, firstDue: 300, heldUntil: 245, now: 305),
        Row(
            testDescription: "a hold that was over when it was left", heardAt: 300, heldUntil: 245, now: 311,
            lateFrom: 245),
        Row(testDescription: "left with nothing to send", heardAt: 1, left: 0, now: 541),
        Row(testDescription: "a test run", heardAt: 1, isTest: true, now: 541),
        Row(testDescription: "left in the future, by a clock that was wrong", heardAt: 700, now: 541, lateFrom: 0),
        Row(testDescription: "made and left in the future", createdAt: 600, heardAt: 700, now: 541, lateFrom: 0),
        Row(testDescription: "planned for later by a clock that was wrong", heardAt: 700, firstDue: 600, now: 541),
        Row(testDescription: "heard of a minute ahead", heardAt: 542, now: 541),
    ]

    private static func at(_ minutes: Int) -> Timestamp { noon + .seconds(minutes * 60) }

    private func definition(_ lateByMax: Duration?, wall: WallTime? = nil) -> RunDefinition {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        var schedule = Schedule(trigger: .none)
        schedule.lateByMax = lateByMax
        campaign.schedule = lateByMax == nil ? nil : schedule
        return RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: noon, wall: wall)
    }

    private func run(_ row: Row) -> Run {
        var counts = DeliveryCounts()
        counts.audience = 9
        counts.pending = row.left
        return Run(
            id: 7, campaign: "c", occurrence: "o", definition: definition(row.lateByMax), state: .running,
            counts: counts, isFrozen: row.isFrozen, isTest: row.isTest, createdAt: Self.at(row.createdAt),
            startedAt: row.heardAt.map(Self.at), heartbeatAt: row.heardAt.map(Self.at))
    }

    @Test(arguments: rows) func `what is due and was sent by nobody for too long is late`(row: Row) {
        let lateness = LatePolicy(run(row)).lateness(at: Self.at(row.now)) {
            guard row.left > 0 else { return nil }
            return LatePolicy.Remaining(
                due: row.left, firstDue: row.firstDue.map(Self.at), heldUntil: row.heldUntil.map(Self.at))
        }
        #expect(lateness?.dueFrom == row.lateFrom.map(Self.at))
    }

    @Test func `what is owed is counted only where it can matter`() {
        let row = Row(testDescription: "", heardAt: 1, now: 11)
        let lateness = LatePolicy(run(row)).lateness(at: Self.at(row.now)) {
            Issue.record("nobody had to know")
            return nil
        }
        #expect(lateness == nil)
    }

    /// By each device's clock: nine o'clock comes last in the zone twelve hours behind UTC.
    @Test(arguments: [(nil as Int?, 660, false), (nil, 731, true), (1, 660, true)])
    func `a run by each device's clock that was never begun waits for the last zone`(
        startedAt: Int?, now: Int, isLate: Bool
    ) {
        let run = Run(
            id: 7, campaign: "c", occurrence: "o",
            definition: definition(.seconds(600), wall: WallTime(seconds: noon.seconds)), state: .running,
            createdAt: noon, startedAt: startedAt.map(Self.at), heartbeatAt: startedAt.map(Self.at))
        #expect((LatePolicy(run).lateness(at: Self.at(now), remaining: { nil }) != nil) == isLate)
    }

    @Test func `the schedule's limit counts before that of a feed, and the usual one without both`() {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        #expect(campaign.lateByMax == .seconds(3600))
        campaign.feed = FeedTrigger(url: "https://example.com")
        campaign.schedule = Schedule(trigger: .none)
        #expect(campaign.lateByMax == .seconds(86_400))
        campaign.schedule?.lateByMax = .seconds(600)
        #expect(campaign.lateByMax == .seconds(600))
    }

    /// It is 2027-01-15T08:00:00Z.
    @Test(
        arguments: [
            (
                1, 775_000,
                "775,000 of 1,000,000 were due from 2027-01-15 08:00 UTC, and no process has sent since 08:01; "
                    + "late_by_max is 10m; `fanfare resume 12` sends them, `fanfare cancel 12` ends the run"
            ),
            (
                1500, 1,
                "1 of 1,000,000 were due from 2027-01-15 08:00 UTC, and no process has sent since 2027-01-16 09:00; "
                    + "late_by_max is 10m; `fanfare resume 12` sends them, `fanfare cancel 12` ends the run"
            ),
            (
                nil, nil,
                "the run was due from 2027-01-15 08:00 UTC, and no process has started sending; late_by_max is 10m; "
                    + "`fanfare resume 12` sends it, `fanfare cancel 12` ends the run"
            ),
        ] as [(Int?, Int?, String)])
    func `the reason says how much, since when, and what to do`(lastSentAt: Int?, due: Int?, reason: String) {
        let lateness = Lateness(
            dueFrom: noon, lastSentAt: lastSentAt.map(Self.at), due: due, audience: 1_000_000,
            lateByMax: .seconds(600))
        #expect(lateness.reason(run: 12) == reason)
    }
}
