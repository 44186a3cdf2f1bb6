import Foundation
import Synchronization

/// Passes values from a thread that may wait to a task that must not, one at a time, in order, and word back of each that was
/// dealt with.
final class Handover<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var dealtWith = 0
        var isClosed = false
        var taker: CheckedContinuation<Void, Never>?
    }

    private static var valuesMax: Int { 2 }

    /// Beside the one that is being worked on, so that neither side waits for the other without need.
    private let room = DispatchSemaphore(value: 0)
    /// Something was dealt with, or nothing will be any more.
    private let news = DispatchSemaphore(value: 0)
    private let state = Mutex(State())

    init() {
        // A semaphore must not end lower than it began: somebody may be waiting when nobody takes any more.
        for _ in 0..<Self.valuesMax { room.signal() }
    }

    /// On the thread: waits for room. Throws `CancellationError` when nobody takes any more.
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

    /// On the thread: how many values were dealt with since it was asked last.
    func dealtWith() -> Int {
        state.withLock { state in
            defer { state.dealtWith = 0 }
            return state.dealtWith
        }
    }

    /// The same, at least one: waits for it. Throws `CancellationError` when nothing will be dealt with any more.
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

    /// Nil once it is closed.
    func take() async throws -> Value? {
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

    /// The value taken last was dealt with.
    func deal() {
        state.withLock { $0.dealtWith += 1 }
        news.signal()
    }

    /// Nobody takes any more, or nothing more will be put.
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
