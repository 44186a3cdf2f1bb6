import Synchronization

/// Wakes every waiter when something changes. No change is lost between a check and a wait.
///
/// Read ``version`` first, check the condition, then wait for a version after the one read.
package final class Signal: Sendable {
    private struct State {
        var version: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())
    private let next = Mutex<Signal?>(nil)

    package init() {}

    package var version: UInt64 { state.withLock { $0.version } }

    package func raise() {
        let woken = state.withLock { state in
            state.version += 1
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in woken { waiter.resume() }
        next.withLock { $0 }?.raise()
    }

    /// Makes each raise of this signal raise the other signal too.
    package func pass(on other: Signal?) {
        next.withLock { $0 = other }
    }

    /// Returns at the first change after `seen`, even if the task is cancelled.
    package func waitUncancelled(after seen: UInt64) async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.version != seen { return true }
                state.waiters[waiter] = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Returns at the first change after `seen`, or when the task is cancelled.
    package func wait(after seen: UInt64) async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.version != seen || Task.isCancelled { return true }
                    state.waiters[waiter] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
        }
    }
}

/// Lets one task at a time through, in order of arrival.
package final class AsyncGate: Sendable {
    private struct State {
        var isTaken = false
        var queue: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package func pass<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isTaken {
                    state.queue.append(continuation)
                    return false
                }
                state.isTaken = true
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.queue.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.queue.removeFirst()
        }
        next?.resume()
    }
}
