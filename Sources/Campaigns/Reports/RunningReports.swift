package import Model
package import Sending
package import Store

/// Reports of runs that go on, for pages: the rows of a large run take seconds to count, so they are counted behind those
/// who look, one run at a time and a twentieth of the time at most, and everybody is told what was found last.
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
    /// Of runs nobody looks at.
    private static let keptFor: Duration = .seconds(600)

    private let reports: ReportRun
    private let clock: WallClock
    private let atOnceMax: Int
    private var last: [Int64: Counted] = [:]
    private var counting: Task<Void, Never>?

    package init(store: any RunLog & OutcomeReader & DeliveryQueue, clock: WallClock, atOnceMax: Int = countedAtOnceMax)
    {
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
        let known = last[run.id]
        if counting == nil, known.map({ clock.uptime() - $0.uptime >= max(Self.countEvery, $0.took * 20) }) ?? true {
            counting = Task { await count(run) }
        }
        return known
    }

    /// Returns when nothing is being counted.
    package func settle() async { await counting?.value }

    private func count(_ run: Run) async {
        let start = clock.uptime()
        let report = try? await reports.result(of: run)
        let end = clock.uptime()
        counting = nil
        last = last.filter { end - $0.value.uptime < Self.keptFor }
        if let report { last[run.id] = Counted(report: report, at: clock.now(), uptime: end, took: end - start) }
    }
}
