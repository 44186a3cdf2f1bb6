package import Model
package import Store

/// What people did with one of several runs.
package struct RunResponse: Hashable, Sendable {
    package var run: Int64
    /// When the run started.
    package var at: Timestamp
    package var opened: FeedbackReport.Share
    /// The devices that reached the campaign's goal. `nil` without a goal, and while it is being counted.
    package var goal: RunGoal?

    package init(run: Int64, at: Timestamp, opened: FeedbackReport.Share, goal: RunGoal? = nil) {
        self.run = run
        self.at = at
        self.opened = opened
        self.goal = goal
    }
}

/// The devices of a run, of those not held out, that reached the campaign's goal.
package enum RunGoal: Hashable, Sendable {
    case counted(FeedbackReport.Share)
    /// There is no figure, for this reason.
    case unknown(String)

    package var share: FeedbackReport.Share? { if case .counted(let share) = self { share } else { nil } }
    package var reason: String? { if case .unknown(let reason) = self { reason } else { nil } }
}

/// The reports of runs in progress, for pages. Counting the rows of a large run takes seconds, so the count runs in the
/// background.
package struct RunningReports: Sendable {
    package typealias Counted = BackgroundCountCache<Int64, ReportResult>.Counted

    /// The maximum size of an audience that is counted while the page waits.
    package static let countedAtOnceMax = 20_000
    private static let countEvery: Duration = .seconds(10)
    private static let opensWithin: Duration = .seconds(2)

    private let reports: ReportRun
    private let clock: WallClock
    private let atOnceMax: Int
    private let counted: BackgroundCountCache<Int64, ReportResult>
    private let waves: BackgroundCountCache<Int64, [PlannedWave]>
    private let feedback: BackgroundCountCache<Int64, FeedbackReport?>
    private let goals: BackgroundCountCache<Int64, RunGoal?>

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
        goals = BackgroundCountCache(countQueue, clock: clock, every: Self.countEvery)
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

    /// Returns the opens of runs, as ``ReportRun/opens(of:)`` does. Empty if the store takes longer than two seconds,
    /// so that no slow read delays a list.
    package func opens(of runs: [Run]) async throws -> [Int64: FeedbackReport.Share] {
        do {
            return try await ReadAllowance(limit: Self.opensWithin).use { try await reports.opens(of: runs) }
        } catch is ReadRefusal {
            return [:]
        }
    }

    /// Returns the opens and the goal of each run in which people did something, in the order of the runs. The goals of
    /// small runs are counted while the page waits; the others are `nil` until they are counted in the background.
    package func responses(of runs: [Run]) async throws -> [RunResponse] {
        let opens = try await reports.opens(of: runs)
        var room = atOnceMax
        var responses: [RunResponse] = []
        for run in runs {
            guard let opened = opens[run.id] else { continue }
            var response = RunResponse(run: run.id, at: run.startedAt ?? run.createdAt, opened: opened)
            if run.definition.campaign.conversion != nil {
                if run.counts.audience <= room {
                    room -= run.counts.audience
                    response.goal = try await reports.goal(of: run, now: clock.now())
                } else {
                    response.goal = try await goals.latest(run.id) { [reports, clock] in
                        try await reports.goal(of: run, now: clock.now())
                    }?.figure
                }
            }
            responses.append(response)
        }
        return responses
    }

    /// Returns the planned waves. `nil` while they are being counted.
    package func waves(of run: Run) async throws -> [PlannedWave]? {
        if run.definition.wall == nil || !run.isFrozen || run.counts.audience <= atOnceMax {
            return try await reports.waves(of: run)
        }
        return try await waves.latest(run.id) { [reports] in try await reports.waves(of: run) }?.figure
    }
}
