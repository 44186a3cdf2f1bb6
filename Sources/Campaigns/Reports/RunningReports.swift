package import Model
package import Store

/// The reports of runs in progress, for pages. Counting the rows of a large run takes seconds, so the count runs in the
/// background.
package struct RunningReports: Sendable {
    package typealias Counted = BackgroundCountCache<Int64, ReportResult>.Counted

    /// The maximum size of an audience that is counted while the page waits.
    package static let countedAtOnceMax = 20_000
    private static let countEvery: Duration = .seconds(10)

    private let reports: ReportRun
    private let clock: WallClock
    private let atOnceMax: Int
    private let counted: BackgroundCountCache<Int64, ReportResult>
    private let waves: BackgroundCountCache<Int64, [PlannedWave]>
    private let feedback: BackgroundCountCache<Int64, FeedbackReport?>

    package init(
        store: any RunLog & AuditLog & OutcomeReader & DeliveryQueue & FeedbackLog, countQueue: CountQueue,
        clock: WallClock,
        atOnceMax: Int = countedAtOnceMax
    ) {
        reports = ReportRun(store: store)
        self.clock = clock
        self.atOnceMax = atOnceMax
        counted = BackgroundCountCache(countQueue, clock: clock, every: Self.countEvery)
        waves = BackgroundCountCache(countQueue, clock: clock, every: nil)
        feedback = BackgroundCountCache(countQueue, clock: clock, every: Self.countEvery)
    }

    /// Returns the report. `nil` while a large run is counted for the first time.
    package func report(of run: Run) async throws -> Counted? {
        let report =
            run.counts.audience <= atOnceMax
            ? try await reports.counted(run) : try await reports.keptResult(of: run)
        if let report { return Counted(report, clock) }
        // A figure from before the run's end is not shown once the run has ended.
        let ended = run.state.isFinal ? RunResult(run).counts : nil
        return try await counted.latest(run.id, where: { ended == nil || $0.counts == ended }) { [reports] in
            try await reports.counted(run)
        }
    }

    /// Returns what people did. `nil` if the campaign asks for no feedback, or while a large run is counted for the
    /// first time.
    ///
    /// - Parameter report: the run's report.
    package func feedback(of run: Run, in report: ReportResult) async throws -> FeedbackReport? {
        guard run.definition.campaign.hasFeedback else { return nil }
        if run.counts.audience <= atOnceMax { return try await reports.feedback(of: run, in: report, now: clock.now()) }
        return try await feedback.latest(run.id) { [reports, clock] in
            try await reports.feedback(of: run, in: report, now: clock.now())
        }?.figure
    }

    /// Returns the planned waves. `nil` while they are being counted.
    package func waves(of run: Run) async throws -> [PlannedWave]? {
        if run.definition.wall == nil || !run.isFrozen || run.counts.audience <= atOnceMax {
            return try await reports.waves(of: run)
        }
        return try await waves.latest(run.id) { [reports] in try await reports.waves(of: run) }?.figure
    }
}
