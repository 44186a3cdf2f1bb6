import Synchronization

/// A queue that lets a few outside callers run long reads at the same time. Other reads wait in line. Each caller has
/// one turn at a time, so that one caller's reads do not block the others.
package final class ReadQueue: Sendable {
    /// The number of turns at the same time. A store has more connections for expensive reads: the daemon's own reads
    /// use the rest.
    package static let atOnceMax = 2
    package static let waitingMax = 20
    package static let waitingOfCallerMax = 8
    /// The longest time of an expensive read for an outside caller.
    package static let timeMax: Duration = .seconds(120)

    private struct Waiting {
        var id: Int
        var caller: String
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var atOnceMax: Int
        var reading: [String] = []
        var waiting: [Waiting] = []
        var lastID = 0
        /// Reads that are entering the line, and whether their task was cancelled meanwhile.
        var arriving: [Int: Bool] = [:]

        func hasRoom(for caller: String) -> Bool {
            reading.count < atOnceMax && !reading.contains(caller)
        }
    }

    private let state: Mutex<State>

    /// The maximum number of reads in line.
    package let lineMax: Int

    /// - Parameters:
    ///   - atOnceMax: the number of callers that have a turn at the same time.
    ///   - lineMax: the maximum number of reads in line.
    package init(atOnceMax: Int = ReadQueue.atOnceMax, lineMax: Int = ReadQueue.waitingMax) {
        self.lineMax = lineMax
        state = Mutex(State(atOnceMax: atOnceMax))
    }

    /// The number of reads in line.
    package var waiting: Int { state.withLock { $0.waiting.count } }

    /// Runs `body` during a turn of the caller. Throws ``ReadRefusal/tooMany(waiting:)``, and `CancellationError` for a
    /// task that is cancelled while it waits.
    package func run<Value: Sendable>(for caller: String, _ body: () async throws -> Value) async throws -> Value {
        try await begin(caller)
        defer { end(caller) }
        try Task.checkCancellation()
        return try await body()
    }

    /// Runs `body` during a turn of the caller. The wait takes at most `limit`; `body` may take any time. Returns
    /// `nil`, and does not run `body`, if the turn did not come in time or the line is full. Throws `CancellationError`
    /// for a task that is cancelled while it waits.
    package func run<Value: Sendable>(
        for caller: String, waitingAtMost limit: Duration, _ body: () async throws -> Value
    ) async throws -> Value? {
        guard await begin(caller, waitingAtMost: limit) else {
            try Task.checkCancellation()
            return nil
        }
        defer { end(caller) }
        try Task.checkCancellation()
        return try await body()
    }

    /// Returns whether the caller has a turn. A turn that comes at the same moment as the timeout counts.
    private func begin(_ caller: String, waitingAtMost limit: Duration) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    try await self.begin(caller)
                    return true
                } catch {
                    return false
                }
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return false
            }
            var hasTurn = false
            for await isTurn in group {
                hasTurn = hasTurn || isTurn
                group.cancelAll()
            }
            return hasTurn
        }
    }

    private func begin(_ caller: String) async throws {
        let id: Int? = try state.withLock { state in
            if state.hasRoom(for: caller) {
                state.reading.append(caller)
                return nil
            }
            let own = state.waiting.count { $0.caller == caller }
            guard own < Self.waitingOfCallerMax else { throw ReadRefusal.tooMany(waiting: own) }
            guard state.waiting.count < lineMax else { throw ReadRefusal.tooMany(waiting: state.waiting.count) }
            state.lastID += 1
            state.arriving[state.lastID] = false
            return state.lastID
        }
        guard let id else { return }
        let hasTurn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                wait(Waiting(id: id, caller: caller, continuation: continuation))
            }
        } onCancel: {
            cancel(id)
        }
        guard hasTurn else { throw CancellationError() }
    }

    private func wait(_ waiting: Waiting) {
        let answer: Bool? = state.withLock { state in
            if state.arriving.removeValue(forKey: waiting.id) ?? true { return false }
            // A turn may have ended since the check.
            if state.hasRoom(for: waiting.caller) {
                state.reading.append(waiting.caller)
                return true
            }
            state.waiting.append(waiting)
            return nil
        }
        if let answer { waiting.continuation.resume(returning: answer) }
    }

    private func cancel(_ id: Int) {
        let waiting: Waiting? = state.withLock { state in
            if state.arriving[id] != nil { state.arriving[id] = true }
            return state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
        }
        waiting?.continuation.resume(returning: false)
    }

    /// Ends a turn. The next turn goes to the first read in line whose caller has none.
    private func end(_ caller: String) {
        let next: [Waiting] = state.withLock { state in
            if let index = state.reading.firstIndex(of: caller) { state.reading.remove(at: index) }
            var next: [Waiting] = []
            while let index = state.waiting.firstIndex(where: { state.hasRoom(for: $0.caller) }) {
                let waiting = state.waiting.remove(at: index)
                state.reading.append(waiting.caller)
                next.append(waiting)
            }
            return next
        }
        for waiting in next { waiting.continuation.resume(returning: true) }
    }
}
