import Model
import Store
import Synchronization

/// Writes what callers submit one by one, many submissions in a transaction. Callers within some milliseconds share the
/// cost of one commit. Each caller gets its answer after the commit.
///
///     idle     -> flushing (a caller submits)
///     flushing -> idle (a batch is written, and no caller waits)
package final class CommitQueue<Item: Sendable, Answer: Sendable>: Sendable {
    private struct Waiting {
        var item: Item
        var weight: Int
        var continuation: CheckedContinuation<Answer, any Error>
    }

    private struct State {
        var waiting: [Waiting] = []
        var weight = 0
        var isFlushing = false
    }

    private let state = Mutex(State())
    private let noun: String
    private let batchMax: Int
    private let waitingMax: Int
    private let gather: @Sendable () async -> Void
    private let write: @Sendable ([Item]) async throws -> [Answer]

    /// - Parameters:
    ///   - noun: the submissions in the plural, such as `registrations`.
    ///   - batchMax: the weight from which no further item joins a transaction.
    ///   - waitingMax: the weight from which further callers are told to retry.
    ///   - gather: returns when other callers have had time to join the batch.
    ///   - write: writes items in one transaction, and returns the answers in order.
    init(
        _ noun: String, batchMax: Int = 1_000, waitingMax: Int = 10_000,
        gather: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .milliseconds(3)) },
        write: @escaping @Sendable ([Item]) async throws -> [Answer]
    ) {
        self.noun = noun
        self.batchMax = batchMax
        self.waitingMax = waitingMax
        self.gather = gather
        self.write = write
    }

    /// Returns when the item is written; throws if it is not.
    func submit(_ item: Item, weight: Int = 1) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            let (isFull, begins) = state.withLock { state in
                guard state.weight < waitingMax else { return (true, false) }
                state.waiting.append(Waiting(item: item, weight: weight, continuation: continuation))
                state.weight += weight
                defer { state.isFlushing = true }
                return (false, !state.isFlushing)
            }
            if isFull {
                continuation.resume(
                    throwing: Failure(
                        .tryAgain, "\(waitingMax) \(noun) already wait for the store; send this one again later"))
            }
            // The task ends when no caller waits. It belongs to no request, so that a cancelled request does not abort
            // the transaction of the others.
            if begins { Task { await flush() } }
        }
    }

    /// The number of callers that are not in a transaction yet; for tests.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func flush() async {
        while true {
            await gather()
            let batch = state.withLock { state in
                var count = 0
                var weight = 0
                while count < state.waiting.count, weight < batchMax {
                    weight += state.waiting[count].weight
                    count += 1
                }
                let batch = Array(state.waiting.prefix(count))
                state.waiting.removeFirst(count)
                state.weight -= weight
                if batch.isEmpty { state.isFlushing = false }
                return batch
            }
            if batch.isEmpty { return }
            await store(batch)
        }
    }

    private func store(_ batch: [Waiting]) async {
        do {
            try await answer(batch)
        } catch let error as StoreError where error.isBusy && batch.count > 1 {
            await storeEach(of: batch, after: error)
        } catch {
            for waiting in batch { waiting.continuation.resume(throwing: error) }
        }
    }

    private func answer(_ batch: [Waiting]) async throws {
        let answers = try await write(batch.map(\.item))
        for (waiting, answer) in zip(batch, answers) { waiting.continuation.resume(returning: answer) }
    }

    /// Writes the items of a batch one by one, because one of them may need what another transaction holds. The others
    /// need not fail with it. If several are refused, the store itself is busy, and the rest is not tried.
    private func storeEach(of batch: [Waiting], after error: StoreError) async {
        var refused = 0
        for waiting in batch {
            do {
                if refused == Self.refusedMax { throw error }
                try await answer([waiting])
            } catch {
                refused = min(refused + 1, Self.refusedMax)
                waiting.continuation.resume(throwing: error)
            }
        }
    }

    /// The number of busy items after which the rest of a batch is not tried.
    private static var refusedMax: Int { 3 }
}

extension StoreError {
    fileprivate var isBusy: Bool { if case .busy = self { true } else { false } }
}
