import CampaignFiles
package import Model
import Store

/// Counts the devices that an expression selects, while a person writes it.
package struct CountAudience: Sendable {
    private let store: any DeviceRegistry
    private let now: @Sendable () -> Timestamp

    init(store: any DeviceRegistry, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.now = now
    }

    /// Returns the problems of an expression, by position; empty if the expression can be counted.
    package func problems(in expression: String) -> [ExpressionProblemResult] {
        AudienceParser.parse(expression).1.map { ExpressionProblemResult($0, in: expression) }
    }

    /// Returns the segments that an expression names.
    package func segments(in expression: String) -> Set<String> {
        AudienceParser.parse(expression).0?.segments ?? []
    }

    package func count(
        _ expression: String, topic: String, pushType: PushType
    ) async throws -> ExpressionCountResult {
        try await count(ExpressionText.parse(expression, named: "expression"), topic: topic, pushType: pushType)
    }

    /// Returns the number of devices of a topic in a segment.
    package func devices(inSegment name: String, topic: String) async throws -> Int {
        try await count(.segment(name), topic: topic, pushType: .alert).selected
    }

    /// Counts the devices of an audience. Reads the whole device table, within the caller's ``ReadAllowance``.
    private func count(
        _ audience: AudienceExpression, topic: String, pushType: PushType
    ) async throws -> ExpressionCountResult {
        let moment = now()
        let reach = try await store.reach(of: audience, topic: topic, pushType: pushType, now: moment)
        return ExpressionCountResult(reach, topic: topic, pushType: pushType, at: moment)
    }
}

/// A problem of an expression.
package struct ExpressionProblemResult: Codable, Hashable, Sendable {
    /// The position of the problem, from 1, in characters.
    package var column: Int
    package var what: String
    package var advice: String?
    /// The problem as the command line prints it: `expression:1:14: error: what; what to do`.
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

/// The devices that an expression selects: the response of `POST /api/v1/segments/count`.
package struct ExpressionCountResult: Codable, Hashable, Sendable {
    package var topic: String
    package var pushType: String
    /// The devices that the expression selects, including those that a campaign would not send to.
    package var selected: Int
    /// The devices that a campaign of this push type would send to.
    package var reach: Int
    package var byEnvironment: [String: Int]
    /// The selected devices that would not be sent to, by reason.
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
