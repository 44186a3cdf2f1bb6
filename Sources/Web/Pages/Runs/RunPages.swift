import Campaigns
import Hummingbird
import Model

/// The list of runs, and each run.
struct RunPages: Sendable {
    /// What the list shows.
    struct List: Sendable {
        var runs: [RunResult]
    }

    private static let runsShown = 50

    let cases: UseCases

    var routes: [PageRoute] { [.get("/", .read, list)] }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let overview = try await cases.runs.overview(limit: Self.runsShown)
        return try request.page(.runs, title: "Runs", List(runs: overview.result.runs))
    }
}
