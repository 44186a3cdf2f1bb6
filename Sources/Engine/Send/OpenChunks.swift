import APNs
import Model
import Synchronization

/// What a lane has in hand: for each push its delivery, found again by the push's tag without a search.
///
/// A tag is the chunk's number and the row within it.
final class OpenChunks: Sendable {
    private struct Chunk {
        var sent: [SettlementRule.Sent]
        var open: Int
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
    func open(_ sent: [SettlementRule.Sent]) -> Int64 {
        state.withLock { state in
            state.next += 1
            state.chunks[state.next] = Chunk(sent: sent, open: sent.count)
            return state.next << Self.rowBits
        }
    }

    /// The deliveries behind these responses, in their order; a chunk whose last response is taken is forgotten.
    func take(_ responses: [PushResponse]) -> [SettlementRule.Sent] {
        state.withLock { state in
            responses.compactMap { response in
                let number = response.tag >> Self.rowBits
                guard let chunk = state.chunks[number] else { return nil }
                let row = Int(response.tag & (1 << Self.rowBits - 1))
                state.chunks[number]?.open -= 1
                if chunk.open == 1 { state.chunks.removeValue(forKey: number) }
                return chunk.sent[row]
            }
        }
    }
}
