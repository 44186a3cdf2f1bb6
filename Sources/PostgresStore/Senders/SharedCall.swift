import Synchronization

/// One call to the server for all callers that ask at about the same time.
///
/// Callers that come while a call is under way share the next one. At most one call is under way, so each caller waits
/// for two calls at most, whatever the number of callers. The answer is never older than the question.
///
/// The call belongs to no caller and is not cancelled with one, so it runs in a task of its own. It must have a time
/// limit.
final class SharedCall<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    /// Answers all questions. An error that it throws is thrown to all callers.
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

    /// How long the first call waits for others: the runs of one process ask at the same moment, in a task each.
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

    /// Returns `nil` if no caller waits.
    private func next() -> [Question: [CheckedContinuation<Answer, any Error>]]? {
        state.withLock { state in
            state.isUnderWay = !state.waiting.isEmpty
            defer { state.waiting = [:] }
            return state.isUnderWay ? state.waiting : nil
        }
    }
}
