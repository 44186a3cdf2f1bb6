package import APNs
package import TestSupport

/// Lanes that accept all pushes, a few at a time. They take any number of batches, so that only the caller limits them.
package final class SlowTransport: Transport {
    private let answersAtOnce: Int
    private let result: PushResult
    private let look: @Sendable () async throws -> Void
    /// The collapse ids of the pushes that lanes held when they were told to end.
    package let cutOff = Watched<[String]>([])

    /// - Parameter look: called before each response.
    package init(
        answersAtOnce: Int, result: PushResult = ScriptedTransport.accepted,
        look: @escaping @Sendable () async throws -> Void
    ) {
        self.answersAtOnce = answersAtOnce
        self.result = result
        self.look = look
    }

    package func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        SlowLane(answersAtOnce: answersAtOnce, result: result, cutOff: cutOff, look: look)
    }
}

private final class SlowLane: Lane {
    private struct State: Sendable {
        var open: [(tag: Int64, collapseID: String?)] = []
        var isFinished = false
        var hasEnded = false
    }

    private let answersAtOnce: Int
    private let result: PushResult
    private let cutOff: Watched<[String]>
    private let look: @Sendable () async throws -> Void
    private let state = Watched(State())

    init(
        answersAtOnce: Int, result: PushResult, cutOff: Watched<[String]>,
        look: @escaping @Sendable () async throws -> Void
    ) {
        self.answersAtOnce = answersAtOnce
        self.result = result
        self.cutOff = cutOff
        self.look = look
    }

    var status: LaneStatus { LaneStatus() }

    func run() async throws(TransportError) {
        await withTaskCancellationHandler {
            await state.untilUncancelled { $0.hasEnded || $0.isFinished && $0.open.isEmpty }
        } onCancel: {
            let held = state.change { $0.open.compactMap(\.collapseID) }
            cutOff.change { $0 += held }
        }
        state.change { $0.hasEnded = true }
    }

    func send(_ batch: PushBatch) async -> Bool {
        state.change { state in
            guard !state.hasEnded else { return false }
            state.open += batch.pushes.map { (tag: $0.tag, collapseID: batch.headers.collapseID) }
            return true
        }
    }

    func completions() async -> [PushCompletion]? {
        await state.untilUncancelled { !$0.open.isEmpty || $0.hasEnded }
        // Lets the task that feeds the lane continue for a while.
        for _ in 0..<20 { await Task.yield() }
        do {
            try await look()
        } catch {
            // The lane ends and returns what it holds. Otherwise its run would wait for the responses for ever.
            let held = state.change { state in
                defer { (state.open, state.hasEnded) = ([], true) }
                return state.open.map(\.tag)
            }
            return held.isEmpty ? nil : held.map { PushCompletion(tag: $0, result: .notSent(.stopped)) }
        }
        let tags = state.change { [answersAtOnce] state in
            defer { state.open.removeFirst(min(answersAtOnce, state.open.count)) }
            return state.open.prefix(answersAtOnce).map(\.tag)
        }
        if tags.isEmpty { return nil }
        return tags.map {
            PushCompletion(tag: $0, result: result, latencyMicroseconds: 1)
        }
    }

    func finish() {
        state.change { $0.isFinished = true }
    }
}
