import Dispatch
import Model
import Testing

@testable import Web

@Suite(.timeLimit(.minutes(2)))
struct TextThreadsTests {
    /// Holds a thread until it is released.
    private final class Gate: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)

        func hold() { semaphore.wait() }
        func release() { semaphore.signal() }
    }

    @Test func `a stop does not wait for the texts that hold both threads`() async throws {
        let gate = Gate()
        let undeclared = UndeclaredTexts()
        let (held, continuation) = AsyncStream.makeStream(of: Void.self)
        try await withThrowingTaskGroup { group in
            for _ in 1...2 {
                group.addTask {
                    try await TextThreads.serve("text", .edit, readsTexts: true, undeclared: undeclared) {
                        continuation.yield()
                        gate.hold()
                    }
                }
            }
            for await _ in held.prefix(2) {}
            let stopped = try await TextThreads.serve("stop", .halt, readsTexts: true, undeclared: undeclared) { true }
            #expect(stopped)
            for _ in 1...2 { gate.release() }
            try await group.waitForAll()
        }
    }
}
