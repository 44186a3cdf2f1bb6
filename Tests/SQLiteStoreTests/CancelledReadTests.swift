import Dispatch
import Store
import Testing

@testable import SQLiteStore

/// Whoever asked is gone: nobody waits for the answer, and others wait for the turn.
@Suite(.timeLimit(.minutes(10))) struct `A read that was cancelled` {
    /// Seconds of work.
    private static let long = """
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number LIMIT 50000000)
        SELECT count(*) FROM number
        """

    @Test func `between two statements does not carry out the next one`() async throws {
        try await withStore { store in
            let (hasBegun, isCancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let read = Task {
                try await store.read(.expensive) { db in
                    hasBegun.signal()
                    isCancelled.wait()
                    let statement = try RowStatement(db, Self.long)
                    defer { statement.reset() }
                    return try statement.step()
                }
            }
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    hasBegun.wait()
                    continuation.resume()
                }
            }
            read.cancel()
            isCancelled.signal()
            await #expect(throws: CancellationError.self) { try await read.value }
        }
    }
}
