import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// What a process is told of a run that another one held when it asked.
@Suite(.timeLimit(.minutes(10)))
struct RunEndTests {
    /// What the owner, or a person, did between the two looks.
    enum Meanwhile: CaseIterable {
        case nothing, pausedByPerson, finished, cancelled, letGo, letGoAndTakenByThird, pausedItself
    }

    @Test(arguments: Meanwhile.allCases)
    func `a run that its owner left between two looks is not reported as held by that owner`(
        meanwhile: Meanwhile
    ) async throws {
        let scene = try PipelineScene()
        let noon = scene.clock.now
        let run = try await scene.start(try scene.definition())
        let store = scene.store
        _ = try await store.claim(run.id, by: "owner", now: noon)
        func release(_ state: RunState, _ halt: RunHalt? = nil) async throws {
            try await store.release(run.id, by: "owner", state: state, reason: "away", halt: halt, now: noon)
        }
        switch meanwhile {
        case .nothing: break
        case .pausedByPerson:
            try await store.change(run.id, to: .paused, reason: nil, now: noon, by: "amy")
        case .finished:
            _ = try await store.freeze(run.id, by: "owner", now: noon) { _ in }
            try await release(.finished)
        case .cancelled:
            try await store.change(run.id, to: .cancelled, reason: nil, now: noon, by: "amy")
            try await release(.running)
        case .letGo: try await release(.running)
        case .letGoAndTakenByThird:
            try await release(.running)
            _ = try await store.claim(run.id, by: "third", now: noon)
        case .pausedItself: try await release(.paused, .unreachable)
        }
        let end = RunEnd(held: try #require(try await store.run(run.id)), by: "owner", heartbeat: noon)
        let expected: RunEnd? =
            switch meanwhile {
            case .nothing, .pausedByPerson: .busy(owner: "owner", heartbeat: noon)
            case .finished: .finished
            case .cancelled: .cancelled
            case .letGo, .letGoAndTakenByThird: nil
            case .pausedItself: .unreachable("away")
            }
        #expect(end == expected)
    }
}
