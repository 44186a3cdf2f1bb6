import Campaigns
import Hummingbird
import Model

/// Runs: what they are, what became of them, and what may be done to them.
struct RunOperations: Sendable {
    let cases: UseCases

    private static let run = Operation.Parameter.path("run", "The number of a run.", .integer)

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/runs/{run}", id: "getRun", subject: "Runs",
                about: "A run as it is now, as `fanfare status RUN --json` has it.", permission: .read,
                parameters: [Self.run], answers: [.init(.ok, "The run.", .json(RunResult.self))],
                problems: [.notFound], handle: get)
        ]
    }

    @Sendable private func get(_ request: APIRequest) async throws -> Response {
        let run = try await run(request)
        return try .json(try await cases.runs.inDetail(run).result)
    }

    private func run(_ request: APIRequest) async throws -> Run {
        let number = try request.number("run", of: "run")
        let run = try await cases.run("\(number)")
        try request.caller.requireTopic(
            run.definition.campaign.topic, orNotFound: "no run \(number) in the store; `fanfare status` lists them")
        return run
    }
}
