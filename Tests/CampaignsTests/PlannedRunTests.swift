import Campaigns
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// A run that is held to a plan goes to the people who were planned.
@Suite(.timeLimit(.minutes(10))) struct `A run held to a plan` {
    private struct Planned {
        let scene: PipelineScene
        let definition: RunDefinition
        let token: PlanToken

        func start(_ occurrence: String = "o") async throws -> Run {
            try await StartRun(store: scene.store).start(
                definition, occurrence: occurrence, by: "test", now: scene.clock.now, plan: token
            ).run
        }
    }

    private static let segment = "chosen"

    private func choose(_ devices: Range<Int>, in scene: PipelineScene) async throws {
        let chosen = try await scene.store.importSegment(Self.segment, mode: .replace, topic: nil)
        try await chosen.append(devices.map { .installation("install-\($0)") })
        _ = try await chosen.commit(now: scene.clock.now)
    }

    private func define(_ expression: AudienceExpression, in scene: PipelineScene) async throws {
        try await scene.store.defineSegment(
            Self.segment, source: "\(expression)", expression: expression, now: scene.clock.now)
    }

    /// 40 devices, of which every other one is in de-AT, and the rest in en-US.
    private func plan(
        guards: Campaign.Guards = .init(), schedule: Schedule? = nil,
        _ prepare: (PipelineScene) async throws -> Void
    ) async throws -> Planned {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<40)
        try await prepare(scene)
        let definition = try scene.definition {
            $0.audience = Audience(source: "", expression: .segment(Self.segment))
            $0.guards = guards
            $0.schedule = schedule
        }
        let configuration = Configuration(store: "", campaigns: "", templates: "")
        let planned = try await PlanCampaign(
            store: scene.store, configuration: configuration, topic: PipelineScene.topic
        ).plan(definition, occurrence: nil, isNow: false, now: scene.clock.now)
        return Planned(scene: scene, definition: definition, token: planned.plan.token)
    }

    @Test func `is refused when the members of a segment are other people, however many`() async throws {
        let planned = try await plan { try await choose(0..<20, in: $0) }
        try await choose(20..<40, in: planned.scene)
        let drift = await #expect(throws: PlanDrift.self) { try await planned.start() }
        #expect(drift?.parts == [.contents])
        try await choose(0..<20, in: planned.scene)
        #expect(try await planned.start().state == .scheduled)
    }

    @Test func `is refused when a dynamic segment selects by another expression`() async throws {
        // Half of the devices, and then the other half.
        let german = AudienceExpression.oneOf(.locale, [.locale(try #require(LocaleTag("de")))])
        let planned = try await plan { try await define(german, in: $0) }
        #expect(planned.token.reach == 20)
        try await define(.not(german), in: planned.scene)
        let drift = await #expect(throws: PlanDrift.self) { try await planned.start() }
        #expect(drift?.parts == [.contents])
    }

    @Test func `is paused at the freeze when a segment was replaced after the start`() async throws {
        let planned = try await plan { try await choose(0..<20, in: $0) }
        let run = try await planned.start()
        try await choose(20..<40, in: planned.scene)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        _ = try await planned.scene.execute(run, transport)
        let paused = try #require(try await planned.scene.store.run(run.id))
        #expect(paused.state == .paused && paused.halt == .grown)
        #expect(paused.stateReason?.contains("planned before a change to segment chosen") == true)
        #expect(transport.seen.isEmpty)
    }

    @Test func `may reach as many fewer as guards_max_growth lets it reach more`() async throws {
        for (left, drifts) in [(32, false), (31, true)] {
            let planned = try await plan(guards: .init(maxGrowthPercent: 20)) {
                try await define(.everyone, in: $0)
            }
            for number in left..<40 {
                let device = try #require(try await planned.scene.store.device(Int64(number + 1)))
                _ = try await planned.scene.store.removeDevice(
                    device.id, now: planned.scene.clock.now, by: "test")
            }
            guard drifts else {
                #expect(try await planned.start().state == .scheduled)
                continue
            }
            let drift = await #expect(throws: PlanDrift.self) { try await planned.start() }
            #expect(drift?.parts == [.reach(planned: 40, now: left)])
        }
    }

    @Test func `has one hash, whether it follows each device's clock or starts now`() async throws {
        var schedule = Schedule(trigger: .cron("0 9 * * *"))
        schedule.zone = .recipient
        schedule.unknownZone = .named("Etc/UTC")
        let planned = try await plan(schedule: schedule) { try await define(.everyone, in: $0) }
        #expect(try await planned.start().state == .scheduled)
    }
}
