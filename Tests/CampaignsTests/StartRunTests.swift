import Campaigns
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// What the use case does before there is a run, and when there is one already.
@Suite(.timeLimit(.minutes(10))) struct `Starting a run` {
    @Test func `a guard refuses before anything is written`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let definition = try scene.definition { $0.guards = .init(maxReach: 9) }
        await #expect(throws: GuardRefusal.maxReach(reach: 10, limit: 9)) { try await scene.startGuarded(definition) }
        #expect(try await scene.store.runs(limit: 10).isEmpty)
    }

    @Test(arguments: [
        "", " ", "\u{200B}", "o1 ", "\to1", "o\u{200B}1", "o\u{A0}1", "o\u{AD}1", "caf\u{65}\u{301}", "o1\u{FE0F}",
    ])
    func `no name, and one that looks like another, make no run`(name: String) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2)
        await #expect(throws: Failure.self) { try await scene.startGuarded(try scene.definition(), occurrence: name) }
        #expect(try await scene.store.runs(limit: 10).isEmpty)
        try await scene.startGuarded(try scene.definition(), occurrence: "o 1")
        let plain = "café \u{1F468}\u{200D}\u{1F469} 1\u{FE0F}\u{20E3}"
        try await scene.startGuarded(try scene.definition(), occurrence: plain)
    }

    @Test func `a template for tests goes to one device and in no run, whoever insists`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        var definition = try scene.definition()
        definition.template.isTest = true
        let expected = GuardRefusal.testTemplate(definition.template.name)
        await #expect(throws: expected) { try await scene.startGuarded(definition) }
        await #expect(throws: expected) {
            try await StartRun(store: scene.store).start(
                definition, occurrence: "o", by: "test", now: scene.clock.now, overriding: Set(GuardName.allCases))
        }
        let plan = try await Planner(store: scene.store).plan(definition, now: scene.clock.now)
        #expect(plan.refusals == [expected])
        #expect(PlanResult(plan, unset: []).refusedGuards == [])
        #expect(!expected.description.contains("--override-guard"))
        #expect(try await scene.store.runs(limit: 10).isEmpty)
        let device = try #require(try await scene.store.device(1))
        let test = try await SendTest(store: scene.store, segment: nil).start(
            definition, device: device.record.token.hex, variant: nil, by: "test", now: scene.clock.now)
        #expect(test.device.id == 1)
    }

    @Test func `a test goes to the one device that is named, and to none where the name is two's`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let definition = try scene.definition()
        let token = try #require(DeviceToken(bytes: [UInt8](repeating: 7, count: 28) + [0xAB, 0xCD, 0xEF, 0x12]))
        var first = DeviceRecord(token: token, environment: .production, topic: definition.campaign.topic)
        first.installationID = "mine"
        let other = try #require(DeviceToken(bytes: [UInt8](repeating: 9, count: 32)))
        var second = DeviceRecord(token: other, environment: .production, topic: definition.campaign.topic)
        second.userID = "abcdef12"
        _ = try await scene.store.importDevices([first, second], now: scene.clock.now)
        let test = SendTest(store: scene.store, segment: nil)
        for name in ["abcdef12", "%", "*", "min", "mine%", "MINE", ""] {
            await #expect(throws: Failure.self, "\(name)") {
                try await test.start(definition, device: name, variant: nil, by: "test", now: scene.clock.now)
            }
        }
        #expect(try await scene.store.runs(limit: 10).isEmpty)
        let (run, device) = try await test.start(
            definition, device: "…abcdef12", variant: nil, by: "test", now: scene.clock.now)
        #expect(device.record.installationID == "mine")
        #expect(try await scene.store.run(run.id)?.counts.audience == 1)
    }

    @Test func `a test reaches nobody who is not in the segment of test devices`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let definition = try scene.definition()
        var devices: [StoredDevice] = []
        for id in 1...3 { devices.append(try #require(try await scene.store.device(Int64(id)))) }
        let test = SendTest(store: scene.store, segment: "staff")
        func send(_ device: StoredDevice) async throws {
            _ = try await test.start(
                definition, device: device.record.token.hex, variant: nil, by: "test", now: scene.clock.now)
        }
        await #expect(throws: StoreError.self) { try await send(devices[1]) }
        let staff = try await scene.store.importSegment("staff", mode: .replace, topic: nil)
        try await staff.append([.token(devices[1].record.token)])
        _ = try await staff.commit(now: scene.clock.now)
        for device in [devices[0], devices[2]] {
            let refusal = try #require(await #expect(throws: Failure.self) { try await send(device) })
            #expect("\(refusal)".contains("is not in segment staff") && refusal.kind == .refused)
        }
        #expect(try await scene.store.runs(limit: 9, includingTests: true).isEmpty)
        try await send(devices[1])
        #expect(try await scene.store.runs(limit: 9, includingTests: true).map(\.counts.audience) == [1])
    }

    /// The clock stands at 08:00 UTC.
    @Test(arguments: [(-1, false), (0, false), (1, true)])
    func `an occurrence that is named just as late as allowed is not missed`(milliseconds: Int, isMissed: Bool)
        async throws
    {
        let scene = try PipelineScene()
        let definition = try scene.definition { campaign in
            var schedule = Schedule(trigger: .cron("0 8 * * *"))
            schedule.zone = .named("UTC")
            schedule.lateByMax = .seconds(600)
            campaign.schedule = schedule
        }
        let named = try #require(ScheduledOccurrence(definition, named: "2027-01-15T08:00"))
        let now = scene.clock.now + .seconds(600) + .milliseconds(milliseconds)
        let missed = try await named.missed(in: scene.store, by: "test", now: now)
        #expect((missed?.state == .missed) == isMissed)
        #expect(try await scene.store.runs(limit: 10).count == (isMissed ? 1 : 0))
    }

    @Test(arguments: [(1, "2027-01-15T08:00"), (24, "2027-01-16T08:00")])
    func `an occurrence that is named is neither missed nor due by a clock that was just set forward`(
        hours: Int64, name: String
    ) async throws {
        let scene = try PipelineScene()
        let definition = try scene.definition { campaign in
            var schedule = Schedule(trigger: .cron("0 8 * * *"))
            schedule.zone = .named("UTC")
            schedule.lateByMax = .seconds(600)
            campaign.schedule = schedule
        }
        let named = try #require(ScheduledOccurrence(definition, named: name))
        func missed() async throws -> Run? {
            _ = try await scene.store.noteClocks(scene.clock.clock.reading(), by: "test")
            return try await named.missed(in: scene.store, by: "test", now: scene.clock.now)
        }
        _ = try await scene.store.noteClocks(scene.clock.clock.reading(), by: "test")
        scene.clock.setWall(by: .seconds(hours * 3600))
        let refusal = try #require(await #expect(throws: Failure.self) { _ = try await missed() })
        #expect(refusal.kind == .tryAgain)
        #expect(try await scene.store.runs(limit: 10).isEmpty)
        // Nobody sets it back: it was right.
        scene.clock.advance(by: ConfirmedTime.confirmedAfter)
        #expect(try await missed()?.state == (hours == 1 ? .missed : nil))
    }

    @Test func `one occurrence is one run, as it was frozen first`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let first = try await scene.startGuarded(try scene.definition())
        let second = try await scene.startGuarded(try scene.definition { $0.collapse = .none })
        #expect(first.id == second.id)
        #expect(second.definition.campaign.collapse == .run)
    }
}

extension PipelineScene {
    /// By the use case, with its guards; ``start(_:occurrence:)`` asks none.
    @discardableResult
    func startGuarded(_ definition: RunDefinition, occurrence: String = "o") async throws -> Run {
        try await StartRun(store: store).start(definition, occurrence: occurrence, by: "test", now: clock.now).run
    }
}
