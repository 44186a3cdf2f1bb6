import Model
import Store
import Testing

let noon = Timestamp(milliseconds: 1_800_000_000_000)

struct LeasePolicyTests {
    private static let budget = Configuration.SilentBudget(limit: 2, window: .seconds(3600))
    private static let full: [Timestamp?] = [noon - .seconds(60), noon - .seconds(30)]
    private static let free = noon - .seconds(60) + .seconds(3600)

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var status: DeviceStatus? = .active
        var expiry: Expiry?
        var wave: Timestamp?
        var quiet: Schedule.QuietHours.Policy?
        var zone: String?
        var budget: Configuration.SilentBudget?
        var ends: [Timestamp?] = []
        var newerWaits = false
        var expected: LeaseDecision
    }

    /// Noon is 9 in Berlin and 3 in the morning in New York.
    private static let morning = noon + .seconds(5 * 3600)

    static let rows: [Row] = [
        Row(testDescription: "an active device is sent to", expected: .send(until: nil)),
        Row(testDescription: "a device that is no longer stored", status: nil, expected: .suppress(.tokenGone)),
        Row(testDescription: "a gone device", status: .gone, expected: .suppress(.tokenGone)),
        Row(testDescription: "a suspended device", status: .suspended, expected: .suppress(.wrongEnvironment)),
        Row(
            testDescription: "at its expiry", expiry: Expiry(plannedAt: noon - .seconds(60), after: .seconds(60)),
            expected: .suppress(.expired)),
        Row(
            testDescription: "a wave's own expiry",
            expiry: Expiry(plannedAt: noon - .seconds(600), after: .seconds(60)),
            wave: noon - .seconds(59), expected: .send(until: noon + .seconds(1))),
        Row(
            testDescription: "awake, until the night", quiet: .defer, zone: "Europe/Berlin",
            expected: .send(until: noon + .seconds(13 * 3600))),
        Row(
            testDescription: "awake, until it expires", expiry: Expiry(plannedAt: noon, after: .seconds(3600)),
            quiet: .defer, zone: "Europe/Berlin", expected: .send(until: noon + .seconds(3600))),
        Row(
            testDescription: "asleep", quiet: .defer, zone: "America/New_York",
            expected: .wait(until: morning, for: .quietHours)),
        Row(
            testDescription: "asleep until the expiry", expiry: Expiry(plannedAt: noon, after: .seconds(5 * 3600)),
            quiet: .defer, zone: "America/New_York", expected: .suppress(.quietHours)),
        Row(
            testDescription: "asleep, to be dropped", quiet: .drop, zone: "America/New_York",
            expected: .suppress(.quietHours)),
        Row(
            testDescription: "of an unknown zone, to be left out", quiet: .drop, zone: "Nowhere/AtAll",
            expected: .suppress(.unknownZone)),
        Row(testDescription: "a slot is left", budget: budget, ends: [noon], expected: .send(until: nil)),
        Row(
            testDescription: "no slot is left", budget: budget, ends: full,
            expected: .wait(until: free, for: .silentBudget)),
        Row(
            testDescription: "no slot is left, and a newer push waits", budget: budget, ends: full, newerWaits: true,
            expected: .suppress(.coalesced)),
        Row(
            testDescription: "no slot before the expiry, newer or not",
            expiry: Expiry(plannedAt: noon, after: .seconds(600)), budget: budget, ends: full, newerWaits: true,
            expected: .suppress(.silentBudget)),
        Row(
            testDescription: "a gone device takes no slot", status: .gone, budget: budget, ends: full,
            expected: .suppress(.tokenGone)),
    ]

    @Test(arguments: rows) func `a pending delivery is sent, put off or suppressed`(row: Row) {
        var request = LeaseRequest(run: 1, environment: .production, limit: 1, now: noon, owner: "a")
        request.expiry = row.expiry
        request.silentBudget = row.budget
        request.quiet = row.quiet.flatMap(Self.quiet)
        var policy = LeasePolicy(request)
        // Twice: what is remembered of a zone changes nothing.
        for _ in 0..<2 {
            let decision = policy.decide(
                status: row.status, in: .production, zone: row.zone, wave: row.wave, silentEnds: { row.ends },
                newerWaits: { row.newerWaits })
            #expect(decision == row.expected)
        }
    }

    @Test func `an alert without quiet hours asks for no further facts`() {
        var policy = LeasePolicy(LeaseRequest(run: 1, environment: .production, limit: 1, now: noon, owner: "a"))
        var asked = 0
        let decision = policy.decide(
            status: .active, in: .production, zone: nil, wave: nil,
            silentEnds: {
                asked += 1
                return []
            },
            newerWaits: {
                asked += 1
                return false
            })
        #expect(decision == .send(until: nil) && asked == 0)
    }

    @Test func `a token is sent to its own environment or not at all`() {
        let both: Set<PushEnvironment> = [.production, .sandbox]
        func decision(_ status: DeviceStatus, reachable: Set<PushEnvironment>) -> LeaseDecision {
            var request = LeaseRequest(run: 1, environment: .production, limit: 1, now: noon, owner: "a")
            request.reachable = reachable
            request.expiry = Expiry(plannedAt: noon, after: .zero)
            var policy = LeasePolicy(request)
            return policy.decide(
                status: status, in: .sandbox, zone: nil, wave: nil, silentEnds: { [] }, newerWaits: { false })
        }
        #expect(decision(.active, reachable: both) == .move(to: .sandbox))
        #expect(decision(.active, reachable: [.production]) == .suppress(.wrongEnvironment))
        #expect(decision(.gone, reachable: both) == .suppress(.tokenGone))
        #expect(decision(.suspended, reachable: both) == .suppress(.wrongEnvironment))
    }

    private static func quiet(_ policy: Schedule.QuietHours.Policy) -> QuietTimes? {
        var schedule = Schedule(trigger: .none)
        schedule.unknownZone = .drop
        schedule.quietHours = .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: policy)
        return QuietTimes(schedule)
    }
}
