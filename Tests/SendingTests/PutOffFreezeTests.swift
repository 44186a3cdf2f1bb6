import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import Testing

/// The store writes down a limited number of audiences at the same time.
@Suite(.timeLimit(.minutes(10))) struct `A run whose turn to be frozen does not come` {
    private let scene: PipelineScene
    private let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    init() throws { scene = try PipelineScene() }

    /// Takes all turns and fills the line behind them; what comes after them is refused.
    private func takeTurns() async -> [Task<Void, any Error>] {
        let queue = scene.store.freezeQueue
        let tasks = (0..<queue.lineMax + 200).map { number in
            Task { try await queue.run(for: "held \(number)") { try await Task.sleep(for: .seconds(600)) } }
        }
        while queue.waiting < queue.lineMax { await Task.yield() }
        return tasks
    }

    @Test func `is put off with nothing changed, and sent once there is room`() async throws {
        try await scene.addDevices(0..<30)
        let run = try await scene.start(try scene.definition())
        let held = await takeTurns()
        let end = try await scene.execute(run, whole)
        let isPutOff = if case .waiting(let moment) = end { moment > run.createdAt } else { false }
        #expect(isPutOff, "\(end)")
        let left = try #require(try await scene.store.run(run.id))
        #expect(left.state == .running && left.owner == nil && !left.isFrozen && left.counts.audience == 0)
        for task in held { task.cancel() }
        for task in held { _ = await task.result }
        #expect(try await scene.execute(run, whole) == .finished)
        #expect(try await scene.report(run).counts.accepted == 30)
    }
}
