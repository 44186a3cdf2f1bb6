import APNs
import Model
import Platform
import Synchronization

/// The pushes of one lane, from their lease to their recorded outcome. The tag of a push leads to its run, its delivery
/// and its journal entry without a search. The entry is freed when the outcome is recorded.
///
/// A tag is the number of a chunk and the row within it.
final class InFlightPushes: Sendable {
    /// A class, so that a completion does not copy its rows.
    private final class Chunk {
        let run: RunInProgress
        let sent: [SettlementPolicy.Sent]
        var open: Int

        init(run: RunInProgress, sent: [SettlementPolicy.Sent]) {
            self.run = run
            self.sent = sent
            open = sent.count
        }
    }

    /// Completions of one run with their deliveries, one each.
    struct Completed {
        var run: RunInProgress
        var sent: [SettlementPolicy.Sent] = []
        var completions: [PushCompletion] = []
    }

    private struct State {
        var next: Int64 = 0
        var chunks: [Int64: Chunk] = [:]
        /// The number of deliveries leased for this lane without a recorded outcome.
        var leased = 0
        /// The number of these deliveries whose outcome could not be recorded.
        var abandoned = 0
    }

    private let state = Mutex(State())
    private let changed = Signal()
    private let leasedMax: Int
    private static let rowBits: Int64 = 20
    private static let rowMask: Int64 = 1 << rowBits - 1

    private let journal: JournalSegment?

    /// - Parameter journal: the journal segment, with an entry for each of `leasedMax` pushes. `nil` means no journal.
    init(leasedMax: Int, journal: JournalSegment?) {
        self.leasedMax = leasedMax
        self.journal = journal
    }

    /// Returns how many more deliveries the lane may lease. Waits until there is room for `enough`, or the task is
    /// cancelled. Returns 0 if all its deliveries are abandoned and leave too little room, so that another lane must
    /// lease.
    func room(atLeast enough: Int) async -> Int {
        while true {
            let seen = changed.version
            let (room, isStuck) = state.withLock {
                (leasedMax - $0.leased, $0.abandoned > 0 && $0.abandoned == $0.leased)
            }
            if room >= enough || Task.isCancelled { return room }
            if isStuck { return 0 }
            await changed.wait(after: seen)
        }
    }

    /// Counts deliveries leased for this lane.
    func took(_ count: Int) {
        state.withLock { $0.leased += count }
    }

    /// Removes deliveries whose outcomes are in the store.
    func settled(_ sent: [SettlementPolicy.Sent]) {
        guard !sent.isEmpty else { return }
        journal?.free(sent.compactMap { $0.entry < 0 ? nil : $0.entry })
        state.withLock { $0.leased -= sent.count }
        changed.raise()
    }

    /// Records that the outcomes of these deliveries could not be recorded. Their journal entries stay for a takeover.
    func abandoned(_ sent: [SettlementPolicy.Sent]) {
        state.withLock { $0.abandoned += sent.count }
        changed.raise()
    }

    /// Enters the pushes of a chunk in the journal and numbers the chunk. The push at row `n` gets the tag `base + n`.
    func open(_ chunk: inout PushComposer.Chunk, lease: Int64, of run: RunInProgress) {
        if let journal {
            let sent = chunk.sent
            let entries = journal.enter(sent.count, lease: lease) { (sent[$0].device, sent[$0].localeIndex) }
            for row in entries.indices {
                chunk.sent[row].entry = entries[row]
                chunk.batch.pushes[row].entry = entries[row]
            }
            chunk.batch.journal = journal
        }
        let sent = chunk.sent
        chunk.base = state.withLock { state in
            state.next += 1
            state.chunks[state.next] = Chunk(run: run, sent: sent)
            return state.next << Self.rowBits
        }
        for row in chunk.batch.pushes.indices { chunk.batch.pushes[row].tag = chunk.base + Int64(row) }
    }

    /// Removes a chunk that the lane did not accept.
    func drop(base: Int64) {
        state.withLock { _ = $0.chunks.removeValue(forKey: base >> Self.rowBits) }
    }

    /// Returns the deliveries of these completions, grouped by run and in order. A chunk is removed with its last
    /// delivery.
    func take(_ completions: [PushCompletion]) -> [Completed] {
        state.withLock { state in
            var completed: [Completed] = []
            var start = completions.startIndex
            // Consecutive completions mostly belong to one chunk.
            while start < completions.endIndex {
                let number = completions[start].tag >> Self.rowBits
                let end = completions[start...].firstIndex { $0.tag >> Self.rowBits != number } ?? completions.endIndex
                if let chunk = state.chunks[number] {
                    Self.add(completions[start..<end], of: chunk, to: &completed)
                    chunk.open -= end - start
                    if chunk.open == 0 { state.chunks.removeValue(forKey: number) }
                }
                start = end
            }
            return completed
        }
    }

    private static func add(
        _ completions: ArraySlice<PushCompletion>, of chunk: Chunk, to completed: inout [Completed]
    ) {
        let run = chunk.run.id
        let index = completed.lastIndex { $0.run.id == run } ?? completed.count
        if index == completed.count { completed.append(Completed(run: chunk.run)) }
        for completion in completions { completed[index].sent.append(chunk.sent[Int(completion.tag & rowMask)]) }
        completed[index].completions += completions
    }

    /// Returns whether all pushes in flight belong to runs that are to stop, or one belongs to a run that must not send
    /// in this environment.
    func hasHalted(in environment: PushEnvironment) -> Bool {
        state.withLock { state in
            let decisions = state.chunks.values.map(\.run.control.decision)
            guard !decisions.isEmpty else { return false }
            return decisions.allSatisfy { $0.reason != nil } || decisions.contains { $0.refused[environment] != nil }
        }
    }
}
