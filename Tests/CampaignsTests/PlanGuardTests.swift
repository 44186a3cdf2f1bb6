import Campaigns
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// Guards at the plan and at the creation of a run.
@Suite(.timeLimit(.minutes(10))) struct `Guards` {
    private static let accepting = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    /// A scene whose campaign has finished one run that reached `before` devices; then there are `now`.
    private func scene(before: Int, now: Int) async throws -> PipelineScene {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<before)
        if before > 0 {
            let run = try await scene.startGuarded(try scene.definition(), occurrence: "first")
            #expect(try await scene.execute(run, Self.accepting) == .finished)
        }
        try await scene.addDevices(before..<now)
        return scene
    }

    struct Row: Sendable {
        var before = 0
        var now: Int
        var guards: Campaign.Guards
        var refusals: [GuardRefusal]
    }

    static let rows: [Row] = [
        Row(now: 5, guards: .init(), refusals: []),
        Row(now: 5, guards: .init(maxReach: 5, minReach: 5), refusals: []),
        Row(now: 5, guards: .init(maxReach: 4), refusals: [.maxReach(reach: 5, limit: 4)]),
        Row(now: 5, guards: .init(minReach: 6), refusals: [.minReach(reach: 5, limit: 6)]),
        Row(now: 5, guards: .init(maxGrowthPercent: 20), refusals: []),
        Row(before: 10, now: 12, guards: .init(maxGrowthPercent: 20), refusals: []),
        Row(
            before: 10, now: 13, guards: .init(maxGrowthPercent: 20),
            refusals: [.maxGrowth(reach: 13, before: 10, run: 1, limitPercent: 20)]),
        Row(
            before: 10, now: 13, guards: .init(maxReach: 12, maxGrowthPercent: 20),
            refusals: [.maxReach(reach: 13, limit: 12), .maxGrowth(reach: 13, before: 10, run: 1, limitPercent: 20)]),
    ]

    @Test(arguments: rows) func `say at the plan and at the start what is too much`(row: Row) async throws {
        let scene = try await scene(before: row.before, now: row.now)
        let definition = try scene.definition { $0.guards = row.guards }
        let plan = try await Planner(store: scene.store).plan(definition, now: scene.clock.now)
        #expect(plan.refusals == row.refusals)
        guard let first = row.refusals.first else {
            #expect(try await scene.startGuarded(definition).state == .scheduled)
            return
        }
        await #expect(throws: first) { try await scene.startGuarded(definition) }
        #expect(try await scene.store.run(campaign: "c", occurrence: "o") == nil)
    }

    @Test func `can be passed over by name, each on record, and no other`() async throws {
        let scene = try await scene(before: 10, now: 13)
        let definition = try scene.definition { $0.guards = .init(maxReach: 12, minReach: 1, maxGrowthPercent: 20) }
        let starter = StartRun(store: scene.store)
        for guards: Set<GuardName> in [[.maxReach], [.maxGrowth], [.minReach]] {
            await #expect(throws: GuardRefusal.self) {
                try await starter.start(
                    definition, occurrence: "o", by: "test", now: scene.clock.now, overriding: guards)
            }
        }
        let run = try await starter.start(
            definition, occurrence: "o", by: "anna", now: scene.clock.now, overriding: Set(GuardName.allCases)
        ).run
        let events = try await scene.store.events(run: run.id).filter { $0.kind == "guard_overridden" }
        #expect(events.map(\.actor) == ["anna", "anna"])
        #expect(events.map(\.detail).map { $0.prefix { $0 != ":" } } == ["max_reach", "max_growth"])
    }

    @Test func `growth is measured against the last finished run, without those it left out`() async throws {
        let scene = try await scene(before: 10, now: 10)
        var record = DeviceRecord(
            token: try #require(DeviceToken(bytes: PipelineScene.token(99))), environment: .production,
            topic: PipelineScene.topic)
        record.alertsAllowed = false
        _ = try await scene.store.importDevices([record], now: scene.clock.now)
        let second = try await scene.startGuarded(try scene.definition(), occurrence: "second")
        #expect(try await scene.execute(second, Self.accepting) == .finished)
        let third = try await scene.startGuarded(try scene.definition(), occurrence: "third")
        try await scene.store.change(third.id, to: .cancelled, reason: nil, now: scene.clock.now, by: "test")
        _ = try await scene.store.createTestRun(
            try scene.definition(), occurrence: "look", device: 1, now: scene.clock.now, by: "test")
        let previous = try #require(try await PreviousRun.find(campaign: "c", in: scene.store))
        #expect(previous.run.id == second.id)
        #expect(previous.reach == 10)
        #expect(try await PreviousRun.find(campaign: "d", in: scene.store) == nil)
    }

    @Test func `a run held to a plan is refused for what drifted, and nothing is written`() async throws {
        let scene = try await scene(before: 0, now: 10)
        let definition = try scene.definition()
        let plan = try await Planner(store: scene.store).plan(definition, now: scene.clock.now)
        let starter = StartRun(store: scene.store)
        var changed = definition
        changed.template.category = TemplateText(literal: "C")
        await #expect(throws: PlanDrift.self) {
            try await starter.start(changed, occurrence: "o", by: "test", now: scene.clock.now, plan: plan.token)
        }
        try await scene.addDevices(10..<11)
        await #expect(throws: PlanDrift.self) {
            try await starter.start(definition, occurrence: "o", by: "test", now: scene.clock.now, plan: plan.token)
        }
        #expect(try await scene.store.runs(limit: 5).isEmpty)
        let again = try await Planner(store: scene.store).plan(definition, now: scene.clock.now)
        let (run, isNew, _) = try await starter.start(
            definition, occurrence: "o", by: "test", now: scene.clock.now, plan: again.token)
        #expect(isNew)
        // The same command goes on with its run, another plan does not.
        try await scene.addDevices(11..<12)
        let repeated = try await starter.start(
            definition, occurrence: "o", by: "test", now: scene.clock.now, plan: again.token)
        #expect(repeated.run.id == run.id)
        let other = try PlanToken(changed, reach: 12, digest: again.token.digest)
        await #expect(throws: PlanDrift.self) {
            try await starter.start(changed, occurrence: "o", by: "test", now: scene.clock.now, plan: other)
        }
    }
}
