import Model
import Store
import Synchronization

/// Registers devices that arrive one by one, many of them in a transaction. Callers within some milliseconds share the
/// cost of one commit. Each caller gets its response after the commit.
///
///     idle     -> flushing (a caller registers a device)
///     flushing -> idle (a batch is stored, and no caller waits)
package final class RegistrationQueue: Sendable {
    private static let batchMax = 1_000
    /// The maximum number of waiting callers. Further callers are told to retry.
    private static let waitingMax = 10_000

    private struct Waiting {
        var record: DeviceRecord
        var continuation: CheckedContinuation<RegisteredDevice, any Error>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isFlushing = false
    }

    private let state = Mutex(State())
    private let store: any DeviceRegistry
    private let now: @Sendable () -> Timestamp
    private let gather: @Sendable () async -> Void

    /// - Parameter gather: returns when other callers have had time to join the batch.
    init(
        store: any DeviceRegistry, now: @escaping @Sendable () -> Timestamp,
        gather: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .milliseconds(3)) }
    ) {
        self.store = store
        self.now = now
        self.gather = gather
    }

    /// Returns when the device is stored; throws if it is not.
    func register(_ record: DeviceRecord) async throws -> RegisteredDevice {
        try await withCheckedThrowingContinuation { continuation in
            let (isFull, begins) = state.withLock { state in
                guard state.waiting.count < Self.waitingMax else { return (true, false) }
                state.waiting.append(Waiting(record: record, continuation: continuation))
                defer { state.isFlushing = true }
                return (false, !state.isFlushing)
            }
            if isFull {
                continuation.resume(
                    throwing: Failure(
                        .tryAgain,
                        "\(Self.waitingMax) registrations already wait for the store; send this one again later"))
            }
            // The task ends when no caller waits. It belongs to no request, so that a cancelled request does not abort
            // the transaction of the others.
            if begins { Task { await flush() } }
        }
    }

    private func flush() async {
        while true {
            await gather()
            let batch = state.withLock { state in
                let batch = state.waiting.prefix(Self.batchMax)
                state.waiting.removeFirst(batch.count)
                if batch.isEmpty { state.isFlushing = false }
                return Array(batch)
            }
            if batch.isEmpty { return }
            await store(batch)
        }
    }

    private func store(_ batch: [Waiting]) async {
        do {
            let registered = try await store.registerDevices(batch.map(\.record), reading: true, now: now())
            for (waiting, device) in zip(batch, registered) { waiting.continuation.resume(returning: device) }
        } catch {
            for waiting in batch { waiting.continuation.resume(throwing: error) }
        }
    }
}
