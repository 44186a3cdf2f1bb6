package import Model
package import Sending
package import Store

/// What pages say of runs that go on: the rows of a large run take seconds to count, so they are counted behind those who
/// look, one run at a time and a small part of the time, and everybody is told what was found last.
package actor RunningReports {
    /// A report, and when it was counted.
    package struct Counted: Sendable {
        package var report: ReportResult
        package var at: Timestamp
        fileprivate var uptime: Duration
        fileprivate var took: Duration
    }

    /// Rows that are counted while the page waits.
    package static let countedAtOnceMax = 20_000
    private static let countEvery: Duration = .seconds(10)
    /// So many times as long as counting took, nothing is counted again.
    private static let rest = 40
    /// Of runs nobody looks at.
    private static let keptFor: Duration = .seconds(600)
    /// They are small, and do not change any more.
    private static let wavesKeptMax = 100

    private let reports: ReportRun
    private let clock: WallClock
    private let atOnceMax: Int
    private var last: [Int64: Counted] = [:]
    private var waves: [Int64: [PlannedWave]] = [:]
    private var counting: Task<Void, Never>?

    package init(
        store: any RunLog & OutcomeReader & DeliveryQueue, clock: WallClock, atOnceMax: Int = countedAtOnceMax
    ) {
        reports = ReportRun(store: store)
        self.clock = clock
        self.atOnceMax = atOnceMax
    }

    /// Nil: it is being counted for the first time.
    package func report(of run: Run) async throws -> Counted? {
        let report =
            run.counts.audience <= atOnceMax
            ? try await reports.result(of: run) : try await reports.keptResult(of: run)
        if let report { return Counted(report: report, at: clock.now(), uptime: clock.uptime(), took: .zero) }
        var known = last[run.id]
        // What has ended since then is not shown as it was before.
        if run.state.isFinal, known?.report.counts != RunResult(run).counts { known = nil }
        let isDue = known.map { clock.uptime() - $0.uptime >= max(Self.countEvery, $0.took * Self.rest) } ?? true
        if isDue { behind { await $0.count(run) } }
        return known
    }

    /// Nil: they are being counted.
    package func waves(of run: Run) async throws -> [PlannedWave]? {
        if let known = waves[run.id] { return known }
        if run.definition.wall == nil || !run.isFrozen || run.counts.audience <= atOnceMax {
            return try await reports.waves(of: run)
        }
        behind { await $0.countWaves(of: run) }
        return nil
    }

    /// Returns when nothing is being counted.
    package func settle() async { await counting?.value }

    /// One at a time: who comes meanwhile asks again later.
    private func behind(_ work: @escaping @Sendable (isolated RunningReports) async -> Void) {
        guard counting == nil else { return }
        counting = Task {
            await work(self)
            counting = nil
        }
    }

    private func count(_ run: Run) async {
        let (start, at) = (clock.uptime(), clock.now())
        let report = try? await reports.result(of: run)
        let end = clock.uptime()
        last = last.filter { end - $0.value.uptime < Self.keptFor }
        if let report { last[run.id] = Counted(report: report, at: at, uptime: end, took: end - start) }
    }

    private func countWaves(of run: Run) async {
        guard let counted = try? await reports.waves(of: run) else { return }
        if waves.count >= Self.wavesKeptMax { waves.removeAll() }
        waves[run.id] = counted
    }
}
