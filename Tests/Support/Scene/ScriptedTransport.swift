package import APNs
import Synchronization
import TestSupport

/// Lanes that respond from a script instead of a network, and record the pushes they got.
package final class ScriptedTransport: Transport {
    package struct Seen: Sendable {
        package var lane: String
        package var push: Push
        package var headers: PushHeaders
    }

    /// Returns the response to a push, given how often its token was seen before.
    package typealias Script = @Sendable (Push, Int) -> PushResult

    private let script: Script
    private let failure: TransportError?
    private let state = Mutex((seen: [Seen](), times: [[UInt8]: Int]()))

    package init(failure: TransportError? = nil, script: @escaping Script) {
        self.failure = failure
        self.script = script
    }

    package static let accepted = PushResult.answered(PushResponse(status: 200))

    package static func refused(_ status: Int, _ reason: PushReason, timestamp: Int64? = nil) -> PushResult {
        .answered(PushResponse(status: status, reason: reason, timestamp: timestamp))
    }

    package var seen: [Seen] { state.withLock { $0.seen } }

    package func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        ScriptedLane(name: name, failure: failure) { batch in self.answer(batch, on: name) }
    }

    private func answer(_ batch: PushBatch, on lane: String) -> [PushCompletion] {
        batch.pushes.map { push in
            let times = state.withLock { state in
                state.seen.append(Seen(lane: lane, push: push, headers: batch.headers))
                defer { state.times[push.token, default: 0] += 1 }
                return state.times[push.token, default: 0]
            }
            return PushCompletion(tag: push.tag, result: script(push, times), latencyMicroseconds: 1000)
        }
    }
}

private final class ScriptedLane: Lane {
    private struct State: Sendable {
        var ready: [PushCompletion] = []
        var isFinished = false
        var hasEnded = false
    }

    private let name: String
    private let failure: TransportError?
    private let answer: @Sendable (PushBatch) -> [PushCompletion]
    private let state = Watched(State())

    init(name: String, failure: TransportError?, answer: @escaping @Sendable (PushBatch) -> [PushCompletion]) {
        self.name = name
        self.failure = failure
        self.answer = answer
    }

    var status: LaneStatus { LaneStatus() }

    func run() async throws(TransportError) {
        if let failure {
            state.change { $0.hasEnded = true }
            throw failure
        }
        await state.untilUncancelled { $0.isFinished }
        state.change { $0.hasEnded = true }
    }

    func send(_ batch: PushBatch) async -> Bool {
        await state.untilUncancelled { $0.ready.count < 2000 || $0.hasEnded }
        // The lane takes the batch or refuses it in one step. A batch that it takes must be answered, even if the lane
        // ends now.
        return state.change { [answer] state in
            guard !state.hasEnded else { return false }
            state.ready += answer(batch)
            return true
        }
    }

    func completions() async -> [PushCompletion]? {
        await state.untilUncancelled { !$0.ready.isEmpty || $0.hasEnded }
        let taken = state.change { state in
            defer { state.ready = [] }
            return state.ready
        }
        return taken.isEmpty ? nil : taken
    }

    func finish() {
        state.change { $0.isFinished = true }
    }
}
