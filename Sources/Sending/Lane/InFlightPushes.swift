import APNs
import Model
import Synchronization

/// The pushes of one lane from their lease to their recorded outcome: for each its run and delivery, found again by the
/// push's tag without a search, and its entry in the journal, which is freed with the outcome's commit.
///
/// A tag is the number of a chunk and the row within it.
final class InFlightPushes: Sendable {
    /// A class, so that an answer does not copy its rows.
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
        /// Leased for this lane, and without a recorded outcome.
        var leased = 0
        /// Of those, such as will have none from this lane.
        var abandoned = 0
    }

    private let state = Mutex(State())
    private let changed = Signal()
    private let leasedMax: Int
    private static let rowBits: Int64 = 20
    private static let rowMask: Int64 = 1 << rowBits - 1

    private let journal: JournalSheet?

    /// - Parameter journal: with an entry for each of `leasedMax` pushes; nil: nobody keeps one.
    init(leasedMax: Int, journal: JournalSheet?) {
        self.leasedMax = leasedMax
        self.journal = journal
    }

    /// How many deliveries more the lane may have leased; waits until there is room for `enough`, or the task is
    /// cancelled. 0: abandoned ones take up the room, which another lane has.
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

    /// So many were leased for this lane.
    func took(_ count: Int) {
        state.withLock { $0.leased += count }
    }

    /// These have their outcomes in the store.
    func settled(_ sent: [SettlementPolicy.Sent]) {
        guard !sent.isEmpty else { return }
        journal?.free(sent.compactMap { $0.entry < 0 ? nil : $0.entry })
        state.withLock { $0.leased -= sent.count }
        changed.raise()
    }

    /// The outcomes of these could not be recorded: their entries in the journal stay for whoever takes over.
    func abandoned(_ sent: [SettlementPolicy.Sent]) {
        state.withLock { $0.abandoned += sent.count }
        changed.raise()
    }

    /// Enters the pushes of a chunk in the journal and numbers it; its push at row `n` carries the tag `base + n`.
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

    /// Forgets a chunk that the lane did not take.
    func drop(base: Int64) {
        state.withLock { _ = $0.chunks.removeValue(forKey: base >> Self.rowBits) }
    }

    /// The deliveries behind these completions, run by run in their order; a chunk whose last one is taken is
    /// forgotten.
    func take(_ completions: [PushCompletion]) -> [Completed] {
        state.withLock { state in
            var completed: [Completed] = []
            var start = completions.startIndex
            // Completions that follow one another are mostly of one chunk.
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

    /// Whether all that is in flight is of runs that are to stop, or something of it may not be sent in this
    /// environment.
    func hasHalted(in environment: PushEnvironment) -> Bool {
        state.withLock { state in
            let controls = state.chunks.values.map(\.run.control)
            guard !controls.isEmpty else { return false }
            return controls.allSatisfy { $0.stopReason != nil } || controls.contains { $0.refused[environment] != nil }
        }
    }
}
