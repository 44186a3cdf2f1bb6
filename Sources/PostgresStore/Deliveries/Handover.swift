import Foundation
import Synchronization

/// Passes values, one at a time and in order, from a thread that may wait to a task that must not. Reports each value
/// that was dealt with back to the thread.
final class Handover<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var dealtWith = 0
        var isClosed = false
        var taker: CheckedContinuation<Void, Never>?
    }

    private static var valuesMax: Int { 2 }

    /// The free places beside the value that is being worked on, so that neither side waits without need.
    private let room = DispatchSemaphore(value: 0)
    /// Signals that a value was dealt with, or that none will be any more.
    private let news = DispatchSemaphore(value: 0)
    private let state = Mutex(State())

    init() {
        // Raise the semaphore from 0: it must not end lower than it began, and a thread may still wait after the
        // handover is closed.
        for _ in 0..<Self.valuesMax { room.signal() }
    }

    /// Waits for room on the thread, and passes the value on. Throws `CancellationError` once the handover is closed.
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

    /// Returns how many values were dealt with since the last call. Call it on the thread.
    func dealtWith() -> Int {
        state.withLock { state in
            defer { state.dealtWith = 0 }
            return state.dealtWith
        }
    }

    /// Returns the same number, but waits until it is at least one. Throws `CancellationError` if none will be dealt
    /// with any more.
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

    /// Reports that the value taken last was dealt with.
    func deal() {
        state.withLock { $0.dealtWith += 1 }
        news.signal()
    }

    /// Closes the handover: no more values will be taken, or none will be put.
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
