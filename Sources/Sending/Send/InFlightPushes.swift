import APNs
import Model
import Synchronization

/// What a lane has in hand: for each push its run and delivery, found again by the push's tag without a search.
///
/// A tag is the chunk's number and the row within it.
final class InFlightPushes: Sendable {
    /// Not copied for each answer.
    private final class Chunk {
        let work: RunInProgress
        let sent: [SettlementPolicy.Sent]
        var open: Int

        init(work: RunInProgress, sent: [SettlementPolicy.Sent]) {
            self.work = work
            self.sent = sent
            open = sent.count
        }
    }

    /// Answers that belong to one run.
    struct Answered {
        var work: RunInProgress
        var sent: [SettlementPolicy.Sent] = []
        var responses: [PushCompletion] = []
    }

    private struct State {
        var next: Int64 = 0
        var chunks: [Int64: Chunk] = [:]
        /// Leased for this lane, and without a recorded outcome.
        var inHand = 0
    }

    private let state = Mutex(State())
    private let changed = Signal()
    private let inHandMax: Int
    private static let rowBits: Int64 = 20
    private static let rowMask: Int64 = 1 << rowBits - 1

    init(inHandMax: Int) {
        self.inHandMax = inHandMax
    }

    /// How many deliveries more the lane may have leased; waits until there is room for `enough`, or the task is cancelled.
    func room(atLeast enough: Int) async -> Int {
        while true {
            let seen = changed.version
            let room = inHandMax - state.withLock { $0.inHand }
            if room >= enough || Task.isCancelled { return room }
            await changed.wait(after: seen)
        }
    }

    func took(_ count: Int) {
        state.withLock { $0.inHand += count }
    }

    /// These have their outcomes in the store.
    func settled(_ count: Int) {
        guard count > 0 else { return }
        state.withLock { $0.inHand -= count }
        changed.raise()
    }

    /// Numbers a chunk; its push at row `n` carries the tag `base + n`.
    func open(_ sent: [SettlementPolicy.Sent], of work: RunInProgress) -> Int64 {
        state.withLock { state in
            state.next += 1
            state.chunks[state.next] = Chunk(work: work, sent: sent)
            return state.next << Self.rowBits
        }
    }

    /// Forgets a chunk that the lane did not take.
    func drop(base: Int64) {
        state.withLock { _ = $0.chunks.removeValue(forKey: base >> Self.rowBits) }
    }

    /// The deliveries behind these responses, run by run in their order; a chunk whose last response is taken is
    /// forgotten.
    func take(_ responses: [PushCompletion]) -> [Answered] {
        state.withLock { state in
            var answered: [Answered] = []
            var start = responses.startIndex
            // Neighbours are mostly of one chunk.
            while start < responses.endIndex {
                let number = responses[start].tag >> Self.rowBits
                let end = responses[start...].firstIndex { $0.tag >> Self.rowBits != number } ?? responses.endIndex
                if let chunk = state.chunks[number] {
                    Self.add(responses[start..<end], of: chunk, to: &answered)
                    chunk.open -= end - start
                    if chunk.open == 0 { state.chunks.removeValue(forKey: number) }
                }
                start = end
            }
            return answered
        }
    }

    private static func add(_ responses: ArraySlice<PushCompletion>, of chunk: Chunk, to answered: inout [Answered]) {
        let run = chunk.work.run.id
        let place = answered.lastIndex { $0.work.run.id == run } ?? answered.count
        if place == answered.count { answered.append(Answered(work: chunk.work)) }
        for response in responses { answered[place].sent.append(chunk.sent[Int(response.tag & rowMask)]) }
        answered[place].responses += responses
    }

    /// Whether something of a run that is to stop is in hand.
    var hasHalted: Bool {
        state.withLock { state in state.chunks.values.contains { $0.work.control.halt != nil } }
    }
}
