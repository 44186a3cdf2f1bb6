import Campaigns
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// What the use case does before there is a run, and when there is one already.
@Suite(.timeLimit(.minutes(2))) struct `Starting a run` {
    @Test func `a guard refuses before anything is written`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let definition = try scene.definition { $0.guards = .init(maxReach: 9) }
        await #expect(throws: GuardRefusal.maxReach(reach: 10, limit: 9)) { try await scene.startGuarded(definition) }
        #expect(try await scene.store.runs(limit: 10).isEmpty)
    }

    @Test(arguments: ["", " ", "o1 ", "\to1"]) func `no name, and blanks around one, make no run`(name: String)
        async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2)
        await #expect(throws: Failure.self) { try await scene.startGuarded(try scene.definition(), occurrence: name) }
        #expect(try await scene.store.runs(limit: 10).isEmpty)
        try await scene.startGuarded(try scene.definition(), occurrence: "o 1")
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
