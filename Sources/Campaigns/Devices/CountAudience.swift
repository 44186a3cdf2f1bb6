import CampaignFiles
package import Model
import Store
import Synchronization

/// Says how many devices an expression selects, while somebody writes it.
package struct CountAudience: Sendable {
    private let store: any DeviceRegistry
    private let turns: CountingTurns
    private let now: @Sendable () -> Timestamp

    init(store: any DeviceRegistry, turns: CountingTurns, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.turns = turns
        self.now = now
    }

    /// What is wrong with an expression, by its places; empty: it can be counted.
    package func problems(in expression: String) -> [ExpressionProblemResult] {
        AudienceParser.parse(expression).1.map { ExpressionProblemResult($0, in: expression) }
    }

    package func count(
        _ expression: String, topic: String, pushType: PushType
    ) async throws -> ExpressionCountResult {
        try await count(ExpressionText.parse(expression, named: "expression"), topic: topic, pushType: pushType)
    }

    /// How many devices of a topic are in a segment.
    package func devices(inSegment name: String, topic: String) async throws -> Int {
        try await count(.segment(name), topic: topic, pushType: .alert).selected
    }

    /// Reads the whole device table: few at a time do it, the others wait.
    private func count(
        _ audience: AudienceExpression, topic: String, pushType: PushType
    ) async throws -> ExpressionCountResult {
        let store = store
        let moment = now()
        let reach = try await turns.take {
            try await store.reach(of: audience, topic: topic, pushType: pushType, now: moment)
        }
        return ExpressionCountResult(reach, topic: topic, pushType: pushType, at: moment)
    }
}

/// Two count at a time, and as many as may wait for it: more are told to come again.
package final class CountingTurns: Sendable {
    private static let atOnceMax = 2
    private static let waitingMax = 20

    private struct State {
        var counting = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    init() {}

    func take<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        try await begin()
        defer { end() }
        return try await body()
    }

    private func begin() async throws {
        let isTooMany = state.withLock { $0.waiting.count >= Self.waitingMax }
        guard !isTooMany else {
            throw Failure(.tryAgain, "\(Self.waitingMax) counts wait for the store already; ask again")
        }
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                guard state.counting >= Self.atOnceMax else {
                    state.counting += 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }

    /// The turn goes on to who waits longest.
    private func end() {
        let next = state.withLock { state in
            if state.waiting.isEmpty { state.counting -= 1 }
            return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
        }
        next?.resume()
    }
}

/// Something wrong with an expression.
package struct ExpressionProblemResult: Codable, Hashable, Sendable {
    /// From 1, in characters.
    package var column: Int
    package var what: String
    package var advice: String?
    /// As the command line writes it: `expression:1:14: error: what; what to do`.
    package var text: String

    init(_ problem: AudienceProblem, in expression: String) {
        column = problem.offset + 1
        what = problem.what
        advice = problem.advice.isEmpty ? nil : problem.advice
        text =
            Diagnostic(
                path: "expression", line: 1, column: problem.offset + 1, what: problem.what, advice: problem.advice
            ).description
    }
}

/// Who an expression selects: what `POST /api/v1/segments/count` answers.
package struct ExpressionCountResult: Codable, Hashable, Sendable {
    package var topic: String
    package var pushType: String
    /// Devices that it selects, whether they may be sent to or not.
    package var selected: Int
    /// Those a campaign of that push type would be sent to.
    package var reach: Int
    package var byEnvironment: [String: Int]
    /// Selected, and not sent to, by reason.
    package var suppressed: [String: Int]
    package var at: String

    init(_ reach: Reach, topic: String, pushType: PushType, at moment: Timestamp) {
        self.topic = topic
        self.pushType = pushType.rawValue
        self.reach = reach.total
        suppressed = Dictionary(uniqueKeysWithValues: reach.suppressed.map { ($0.key.rawValue, $0.value) })
        selected = reach.total + suppressed.values.reduce(0, +)
        byEnvironment = Dictionary(reach.slices.map { ($0.environment.rawValue, $0.count) }, uniquingKeysWith: +)
        at = moment.iso8601
    }
}
