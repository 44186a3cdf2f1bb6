import APNs
import Synchronization

/// Accepts every push at once, without a network.
struct InstantTransport: Transport {
    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane { InstantLane() }
}

/// A mailbox of batches: as bounded as a real lane.
private final class InstantLane: Lane {
    private struct State {
        var ready: [PushCompletion] = []
        var isFinished = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var status: LaneStatus { LaneStatus() }

    func run() async throws(TransportError) {
        await until { $0.isFinished && $0.ready.isEmpty }
    }

    func send(_ batch: PushBatch) async -> Bool {
        await until { $0.ready.count < LaneLimits().outstandingMax }
        let responses = batch.pushes.map {
            PushCompletion(tag: $0.tag, result: .answered(PushResponse(status: 200)), latencyMicroseconds: 1)
        }
        change { $0.ready += responses }
        return true
    }

    func completions() async -> [PushCompletion]? {
        await until { !$0.ready.isEmpty || $0.isFinished }
        var taken: [PushCompletion] = []
        change { swap(&taken, &$0.ready) }
        return taken.isEmpty ? nil : taken
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
