import Synchronization

/// Combines the questions that callers ask at about the same time into one call to the server.
///
/// Callers that arrive during a call share the next call. Only one call runs at a time, so each caller waits for at
/// most two calls, whatever the number of callers. An answer is never older than its question.
///
/// The call must not be cancelled with one of its callers, so it runs in a separate task. It must have a time limit.
final class SharedCall<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    /// A function that answers all questions. If it throws an error, all callers get the error.
    typealias Call = @Sendable ([Question]) async throws -> [Question: Result<Answer, any Error>]

    private struct State {
        var waiting: [Question: [CheckedContinuation<Answer, any Error>]] = [:]
        var isUnderWay = false
    }

    private let state = Mutex(State())

    func ask(_ question: Question, _ call: @escaping Call) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            let isFirst = state.withLock { state in
                state.waiting[question, default: []].append(continuation)
                defer { state.isUnderWay = true }
                return !state.isUnderWay
            }
            if isFirst { Task { await carryOut(call) } }
        }
    }

    /// The time that the first caller waits for others, because the runs of one process ask at the same moment, each
    /// in its own task.
    private static var gathering: Duration { .milliseconds(3) }

    private func carryOut(_ call: Call) async {
        try? await Task.sleep(for: Self.gathering)
        while let asked = next() {
            let answers: Result<[Question: Result<Answer, any Error>], any Error>
            do { answers = .success(try await call(Array(asked.keys))) } catch { answers = .failure(error) }
            for (question, callers) in asked {
                let answer = answers.flatMap { $0[question] ?? .failure(CancellationError()) }
                for caller in callers { caller.resume(with: answer) }
            }
        }
    }

    /// Returns the questions of the next call, or `nil` if no caller waits.
    private func next() -> [Question: [CheckedContinuation<Answer, any Error>]]? {
        state.withLock { state in
            state.isUnderWay = !state.waiting.isEmpty
            defer { state.waiting = [:] }
            return state.isUnderWay ? state.waiting : nil
        }
    }
}
