import Testing

@testable import Store

/// Who may read for long, and who waits.
@Suite(.timeLimit(.minutes(1))) struct ReadTurnsTests {
    private let turns = ReadTurns()

    /// Holds a turn until it is let go.
    private func hold(_ caller: String, in group: inout ThrowingTaskGroup<Void, any Error>) async -> Held {
        let held = Held()
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        group.addTask { [turns] in
            try await turns.take(caller) {
                begin.yield()
                for await _ in held.end {}
            }
        }
        for await _ in began { break }
        return held
    }

    private struct Held: Sendable {
        let end: AsyncStream<Never>
        private let ending: AsyncStream<Never>.Continuation

        init() { (end, ending) = AsyncStream.makeStream(of: Never.self) }

        func letGo() { ending.finish() }
    }

    @Test func `a caller has one turn at a time, and others go on beside it`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let first = await hold("anna", in: &group)
            // Anna's second waits; Ben's does not.
            group.addTask { [turns] in try await turns.take("anna") {} }
            try await turns.take("ben") {}
            first.letGo()
            try await group.waitForAll()
        }
    }

    @Test func `a turn goes to the first in line whose caller has none`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let anna = await hold("anna", in: &group)
            let ben = await hold("ben", in: &group)
            for caller in ["anna", "ben", "carl", "carl"] {
                group.addTask { [turns] in try await turns.take(caller) {} }
            }
            ben.letGo()
            anna.letGo()
            try await group.waitForAll()
        }
        try await turns.take("anna") {}
    }

    @Test func `more than may wait are told so, of one caller sooner than of all`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = await hold("anna", in: &group)
            var waiting: [Task<Void, any Error>] = []
            for _ in 0..<ReadTurns.waitingOfCallerMax {
                waiting.append(Task { [turns] in try await turns.take("anna") {} })
            }
            while turns.waiting < ReadTurns.waitingOfCallerMax { await Task.yield() }
            await #expect(throws: ReadRefusal.tooMany(waiting: ReadTurns.waitingOfCallerMax)) {
                try await turns.take("anna") {}
            }
            // Others are not refused.
            try await turns.take("ben") {}
            for task in waiting { task.cancel() }
            for task in waiting { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(turns.waiting == 0)
            held.letGo()
            try await group.waitForAll()
        }
        try await turns.take("anna") {}
    }
}
