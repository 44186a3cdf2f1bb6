import APNs
import Logging
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Sending

/// The release of a run that was recorded, and whose response was lost: the second try finds no owner.
@Suite(.timeLimit(.minutes(10))) struct `A release that is tried again` {
    private let scene: PipelineScene
    private let pipeline: Pipeline
    private let control = RunControl(counts: DeliveryCounts(), isFrozen: true)

    init() throws {
        scene = try PipelineScene()
        let logger = Logger(label: "test")
        let sender = SendingSetup(
            transport: ScriptedTransport { _, _ in ScriptedTransport.accepted }, endpoints: [.production: .production],
            lanesPerEnvironment: 1, silentBudget: .init())
        pipeline = Pipeline(
            store: scene.store,
            lanes: LaneGroup(sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: logger),
            clock: scene.clock.clock, jitter: { 0 }, logger: logger)
    }

    private func claimed() async throws -> Run {
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.store.claim(run.id, by: "a", now: scene.clock.now) == .claimed)
        return run
    }

    private func release(_ run: Run, _ state: RunState, _ halt: RunHalt? = nil) async throws {
        try await scene.store.release(run.id, by: "a", state: state, reason: "why", halt: halt, now: scene.clock.now)
    }

    @Test func `ends as the first one, and never while the run has an owner`() async throws {
        let run = try await claimed()
        control.stop(.stopRequested)
        #expect(try await pipeline.released(run, control) == nil)
        try await release(run, .running)
        #expect(try await pipeline.released(run, control) == .stoppedEarly)
    }

    @Test func `for a person's look is no end until the pause is on record`() async throws {
        let run = try await claimed()
        control.stop(.breaker("why"))
        try await release(run, .running)
        #expect(try await pipeline.released(run, control) == nil)
        #expect(try await scene.store.claim(run.id, by: "a", now: scene.clock.now) == .claimed)
        try await release(run, .paused, .breaker)
        #expect(try await pipeline.released(run, control) == .breakerOpen("why"))
    }

    @Test func `of a whole run is its end as recorded`() async throws {
        let run = try await claimed()
        try await release(run, .running)
        #expect(try await pipeline.released(run, control) == nil)
        try await scene.store.change(run.id, to: .cancelled, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await pipeline.released(run, control) == .cancelled)
    }
}
