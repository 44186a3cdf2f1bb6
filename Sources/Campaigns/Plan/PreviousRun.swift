package import Model
package import Store

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
    package static func find(campaign: String, in store: any RunLog & OutcomeReader) async throws -> PreviousRun? {
        guard let run = try await store.latestRun(campaign: campaign, state: .finished) else { return nil }
        guard run.counts.suppressed > 0 else { return PreviousRun(run: run, reach: run.counts.audience) }
        let report = try await store.report(run.id)
        let leftOut = report.suppressed.filter { leftOutReasons.contains($0.reason) }.reduce(0) { $0 + $1.count }
        return PreviousRun(run: run, reach: report.counts.audience - leftOut)
    }
}
