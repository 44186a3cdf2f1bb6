import Foundation
import UnixSignals
import Campaigns

/// Long work that Ctrl-C and SIGTERM end in good order, with exit code 75: a transaction is finished or rolled back.
enum Interruptible {
    /// - Parameters:
    ///   - state: what the user finds after an interruption, and what to do.
    ///   - work: obeys its cancellation.
    static func run<Result: Sendable>(
        _ state: String, _ work: @Sendable @escaping () async throws -> Result
    ) async throws -> Result {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let task = Task { try await work() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await obey(signals) { task.cancel() } }
            do {
                return try await task.value
            } catch is CancellationError {
                throw Failure(.tryAgain, "stopped: \(state)")
            }
        }
    }

    /// The second signal ends the process: the work may be waiting for input that never comes.
    private static func obey(_ signals: UnixSignalsSequence, _ cancel: () -> Void) async {
        var isSecond = false
        for await _ in signals {
            if isSecond { exit(ExitStatus.tryAgain.rawValue) }
            isSecond = true
            Console.note("stopping; once more to stop at once")
            cancel()
        }
    }
}
