package import Model
package import Sending
package import Store

/// What pages say of runs that go on: the rows of a large run take seconds to count, so they are counted behind those who
/// look.
package struct RunningReports: Sendable {
    package typealias Counted = CountedBehind<Int64, ReportResult>.Counted

    /// Rows that are counted while the page waits.
    package static let countedAtOnceMax = 20_000
    private static let countEvery: Duration = .seconds(10)

    private let reports: ReportRun
    private let clock: WallClock
    private let atOnceMax: Int
    private let counted: CountedBehind<Int64, ReportResult>
    private let waves: CountedBehind<Int64, [PlannedWave]>

    package init(
        store: any RunLog & OutcomeReader & DeliveryQueue, gate: CountingGate, clock: WallClock,
        atOnceMax: Int = countedAtOnceMax
    ) {
        reports = ReportRun(store: store)
        self.clock = clock
        self.atOnceMax = atOnceMax
        counted = CountedBehind(gate, clock: clock, every: Self.countEvery)
        waves = CountedBehind(gate, clock: clock, every: nil)
    }

    /// Nil: it is being counted for the first time.
    package func report(of run: Run) async throws -> Counted? {
        let report =
            run.counts.audience <= atOnceMax
            ? try await reports.result(of: run) : try await reports.keptResult(of: run)
        if let report { return Counted(report, clock) }
        // What has ended since then is not shown as it was before.
        let ended = run.state.isFinal ? RunResult(run).counts : nil
        return try await counted.latest(run.id, where: { ended == nil || $0.counts == ended }) { [reports] in
            try await reports.result(of: run)
        }
    }

    /// Nil: they are being counted.
    package func waves(of run: Run) async throws -> [PlannedWave]? {
        if run.definition.wall == nil || !run.isFrozen || run.counts.audience <= atOnceMax {
            return try await reports.waves(of: run)
        }
        return try await waves.latest(run.id) { [reports] in try await reports.waves(of: run) }?.figure
    }
}
