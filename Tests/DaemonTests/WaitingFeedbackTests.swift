import Model
import SQLiteStore
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// Reports that were set aside while a run was sent, under a clock that is turned by hand.
@Suite(.timeLimit(.minutes(10))) struct `Reports that wait for the end of a run` {
    private static let lookEvery: Duration = .seconds(1)

    /// Sets one report aside, and returns how many wait after each look.
    ///
    /// - Parameters:
    ///   - receivedAfter: when the report was received, from now.
    ///   - steps: the times between the looks.
    private func looks(
        isSending: @escaping @Sendable (_ look: Int) -> Bool, receivedAfter: Duration = .zero, _ steps: [Duration]
    ) async throws -> [Int] {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        let event = FeedbackEvent(
            source: .installation("install-1", topic: PipelineScene.topic), kind: .appStarted, id: (high: 1, low: 1),
            at: scene.clock.now, receivedAt: scene.clock.now + receivedAfter)
        #expect(try await scene.store.setFeedbackAside([event]) == [.waiting])
        let look = Mutex(0)
        let recorder = WaitingFeedbackRecorder(
            store: scene.store, clock: scene.clock.clock, lookEvery: Self.lookEvery
        ) {
            isSending(look.withLock { $0 })
        }
        return try await withThrowingTaskGroup(of: Void.self, returning: [Int].self) { group in
            group.addTask { try await recorder.run() }
            var waiting: [Int] = []
            for step in steps {
                await scene.clock.sleeper(atLeast: Self.lookEvery)
                waiting.append(try await scene.store.waitingFeedback()?.events ?? 0)
                look.withLock { $0 += 1 }
                scene.clock.advance(by: step)
            }
            await scene.clock.sleeper(atLeast: Self.lookEvery)
            waiting.append(try await scene.store.waitingFeedback()?.events ?? 0)
            group.cancelAll()
            scene.clock.release()
            return waiting
        }
    }

    @Test func `they are recorded when nothing is sent`() async throws {
        #expect(try await looks(isSending: { _ in false }, []) == [0])
        let steps: [Duration] = [.seconds(1), .seconds(1)]
        #expect(try await looks(isSending: { $0 < 2 }, steps) == [1, 1, 0])
    }

    @Test func `they wait for a long run no longer than a minute`() async throws {
        let steps: [Duration] = [.seconds(1), .seconds(58), .seconds(1)]
        #expect(try await looks(isSending: { _ in true }, steps) == [1, 1, 1, 0])
    }

    @Test func `they do not wait for a clock that was set back`() async throws {
        #expect(try await looks(isSending: { _ in true }, receivedAfter: .seconds(3600), []) == [0])
    }
}
