import Testing

@testable import Store

/// Who may read for long, and who waits.
@Suite(.timeLimit(.minutes(10))) struct ReadQueueTests {
    private let queue = ReadQueue()

    /// Holds a turn until it is let go.
    private func hold(_ caller: String, in group: inout ThrowingTaskGroup<Void, any Error>) async -> Held {
        let held = Held()
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        group.addTask { [queue] in
            try await queue.run(for: caller) {
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
            group.addTask { [queue] in try await queue.run(for: "anna") {} }
            try await queue.run(for: "ben") {}
            first.letGo()
            try await group.waitForAll()
        }
    }

    @Test func `a turn goes to the first in line whose caller has none`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let anna = await hold("anna", in: &group)
            let ben = await hold("ben", in: &group)
            for caller in ["anna", "ben", "carl", "carl"] {
                group.addTask { [queue] in try await queue.run(for: caller) {} }
            }
            ben.letGo()
            anna.letGo()
            try await group.waitForAll()
        }
        try await queue.run(for: "anna") {}
    }

    @Test func `a turn that does not come in time is given up, and a free one is taken at once`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let anna = await hold("anna", in: &group)
            let ben = await hold("ben", in: &group)
            let late: Int? = try await queue.run(for: "carl", waitingAtMost: .milliseconds(1)) { 1 }
            #expect(late == nil && queue.waiting == 0)
            anna.letGo()
            let inTime: Int? = try await queue.run(for: "carl", waitingAtMost: .seconds(60)) { 1 }
            #expect(inTime == 1)
            ben.letGo()
            try await group.waitForAll()
        }
        let atOnce: Int? = try await queue.run(for: "carl", waitingAtMost: .zero) { 1 }
        #expect(atOnce == 1)
    }

    @Test func `a full line is no place to wait, and a number of its own lets more in`() async throws {
        let queue = ReadQueue(atOnceMax: 3)
        let readers = 3 + ReadQueue.waitingMax
        let tasks = (0..<readers).map { number in
            Task { try await queue.run(for: "reader \(number)") { try await Task.sleep(for: .seconds(600)) } }
        }
        while queue.waiting < ReadQueue.waitingMax { await Task.yield() }
        let refused: Int? = try await queue.run(for: "anna", waitingAtMost: .seconds(600)) { 1 }
        #expect(refused == nil)
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
        let taken: Int? = try await queue.run(for: "anna", waitingAtMost: .seconds(60)) { 1 }
        #expect(taken == 1 && queue.waiting == 0)
    }

    @Test func `more than may wait are told so, of one caller sooner than of all`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let held = await hold("anna", in: &group)
            var waiting: [Task<Void, any Error>] = []
            for _ in 0..<ReadQueue.waitingOfCallerMax {
                waiting.append(Task { [queue] in try await queue.run(for: "anna") {} })
            }
            while queue.waiting < ReadQueue.waitingOfCallerMax { await Task.yield() }
            await #expect(throws: ReadRefusal.tooMany(waiting: ReadQueue.waitingOfCallerMax)) {
                try await queue.run(for: "anna") {}
            }
            // Others are not refused.
            try await queue.run(for: "ben") {}
            for task in waiting { task.cancel() }
            for task in waiting { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(queue.waiting == 0)
            held.letGo()
            try await group.waitForAll()
        }
        try await queue.run(for: "anna") {}
    }
}
