import APNs
import Synchronization

/// Lanes that accept everything, a few at a time, and take any number of batches: nothing but the caller holds back.
final class SlowTransport: Transport {
    private let answersAtOnce: Int
    private let look: @Sendable () async throws -> Void

    /// - Parameter look: called before each answer.
    init(answersAtOnce: Int, look: @escaping @Sendable () async throws -> Void) {
        self.answersAtOnce = answersAtOnce
        self.look = look
    }

    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        SlowLane(answersAtOnce: answersAtOnce, look: look)
    }
}

private final class SlowLane: Lane {
    private struct State {
        var open: [Int64] = []
        var isFinished = false
        var hasEnded = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let answersAtOnce: Int
    private let look: @Sendable () async throws -> Void
    private let state = Mutex(State())

    init(answersAtOnce: Int, look: @escaping @Sendable () async throws -> Void) {
        self.answersAtOnce = answersAtOnce
        self.look = look
    }

    var status: LaneStatus { LaneStatus() }

    func run() async throws(TransportError) {
        await until { $0.isFinished && $0.open.isEmpty }
        change { $0.hasEnded = true }
    }

    func send(_ batch: PushBatch) async -> Bool {
        change { $0.open += batch.pushes.map(\.tag) }
        return true
    }

    func responses() async -> [PushResponse]? {
        await until { !$0.open.isEmpty || $0.hasEnded }
        // Whoever feeds the lane may go on meanwhile, as long as it likes to.
        for _ in 0..<20 { await Task.yield() }
        do { try await look() } catch { return nil }
        let tags = state.withLock { Array($0.open.prefix(answersAtOnce)) }
        change { $0.open.removeFirst(tags.count) }
        if tags.isEmpty { return nil }
        return tags.map {
            PushResponse(tag: $0, result: .answered(PushAnswer(status: 200)), latencyMicroseconds: 1)
        }
    }

    func finish() {
        change { $0.isFinished = true }
    }

    private func change(_ body: (inout State) -> Void) {
        let woken = state.withLock { state in
            body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in woken { waiter.resume() }
    }

    private func until(_ condition: @Sendable (State) -> Bool) async {
        while !state.withLock({ condition($0) }) {
            await withCheckedContinuation { continuation in
                let holds = state.withLock { state in
                    if condition(state) { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if holds { continuation.resume() }
            }
        }
    }
}
