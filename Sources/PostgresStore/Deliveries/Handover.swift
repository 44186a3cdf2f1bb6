import Foundation
import Synchronization

/// Passes values in order, one at a time, from a thread that may block to a task that must not. Reports to the
/// thread each value that the task has finished.
final class Handover<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var dealtWith = 0
        var isClosed = false
        var taker: CheckedContinuation<Void, Never>?
    }

    private static var valuesMax: Int { 2 }

    /// The number of free places for values, beside the value that the task works on. More than one avoids needless
    /// waits.
    private let room = DispatchSemaphore(value: 0)
    /// Signals that the task has finished a value, or will finish no more.
    private let news = DispatchSemaphore(value: 0)
    private let state = Mutex(State())

    init() {
        // Raise the semaphore from 0. A semaphore must not be released with a lower value than its first one, and a
        // thread may still wait when the handover is closed.
        for _ in 0..<Self.valuesMax { room.signal() }
    }

    /// Waits on the thread for a free place, and passes the value on. Throws `CancellationError` once the handover
    /// is closed.
    func put(_ value: Value) throws {
        room.wait()
        let (isClosed, taker) = state.withLock { state in
            if !state.isClosed { state.values.append(value) }
            defer { state.taker = nil }
            return (state.isClosed, state.taker)
        }
        if isClosed { throw CancellationError() }
        taker?.resume()
    }

    /// Returns the number of values that the task has finished since the last call. Call it on the thread.
    func dealtWith() -> Int {
        state.withLock { state in
            defer { state.dealtWith = 0 }
            return state.dealtWith
        }
    }

    /// Returns the same number, but waits until it is at least one. Throws `CancellationError` if the task will
    /// finish no more.
    func waitForDealtWith() throws -> Int {
        while true {
            let (count, isClosed) = state.withLock { state in
                defer { state.dealtWith = 0 }
                return (state.dealtWith, state.isClosed)
            }
            if count > 0 { return count }
            if isClosed { throw CancellationError() }
            news.wait()
        }
    }

    /// Returns the next value, or `nil` once the handover is closed and empty.
    func next() async throws -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if !state.values.isEmpty || state.isClosed { return true }
                    state.taker = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            close()
        }
        try Task.checkCancellation()
        let value = state.withLock { $0.values.isEmpty ? nil : $0.values.removeFirst() }
        if value != nil { room.signal() }
        return value
    }

    /// Reports that the task has finished the value that it took last.
    func deal() {
        state.withLock { $0.dealtWith += 1 }
        news.signal()
    }

    /// Closes the handover, because one side will take or put no more values.
    func close() {
        let taker = state.withLock { state in
            state.isClosed = true
            defer { state.taker = nil }
            return state.taker
        }
        room.signal()
        news.signal()
        taker?.resume()
    }
}
