package import Model
package import Storage

/// The last run of a campaign that was carried to its end: what growth and changes are measured against.
package struct PreviousRun: Hashable, Sendable {
    /// Left out whatever was sent: the audience selected them, but they were never to be reached.
    private static let leftOutReasons: Set<String> = [
        SuppressionReason.alertsNotAllowed.rawValue, SuppressionReason.wrongEnvironment.rawValue,
        SuppressionReason.tokenGone.rawValue, SuppressionReason.holdout.rawValue,
    ]

    package var run: Run
    /// How many devices it was for, without those that it left out from the start.
    package var reach: Int

    /// Nil when no run of the campaign has finished. Runs of a single test device do not count.
    package static func find(campaign: String, in store: Store) async throws -> PreviousRun? {
        guard let run = try await finishedRun(campaign, store) else { return nil }
        guard run.counts.suppressed > 0 else { return PreviousRun(run: run, reach: run.counts.audience) }
        let report = try await store.report(run.id)
        let leftOut = report.suppressed.filter { leftOutReasons.contains($0.reason) }.reduce(0) { $0 + $1.count }
        return PreviousRun(run: run, reach: report.counts.audience - leftOut)
    }

    private static func finishedRun(_ campaign: String, _ store: Store) async throws -> Run? {
        guard let latest = try await store.latestRun(campaign: campaign) else { return nil }
        if latest.state == .finished { return latest }
        // A run that was cancelled or is still going on hides the one before it; runs come newest first.
        var limit = 64
        while true {
            let runs = try await store.runs(limit: limit)
            if let run = runs.first(where: { $0.campaign == campaign && $0.state == .finished && !$0.isTest }) {
                return run
            }
            guard runs.count == limit else { return nil }
            limit *= 8
        }
    }
}
