import Foundation
import Model
import Store
import Daemon
import Campaigns

/// Runs as they go on: a page that renews itself on a terminal, a page after the other elsewhere.
struct StatusWatch {
    let runs: FollowRuns
    /// Nil: the latest runs.
    let run: Int64?
    let limit: Int
    let interval: Duration

    /// Until the one run is over, or cancelled.
    func show() async throws {
        let clock = ContinuousClock()
        var last: (settled: [Int64: Int], at: ContinuousClock.Instant)?
        while true {
            let overview = try await overview()
            let runs = overview.runs
            let now = clock.now
            let rates = runs.map { run in Self.rate(run, last, now) }
            page(overview, rates)
            last = (Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.counts.settled) }), now)
            if run != nil, runs.allSatisfy(\.state.isFinal) { return }
            try await Task.sleep(for: interval)
        }
    }

    private func overview() async throws -> FollowRuns.Overview {
        guard let run else { return try await runs.overview(limit: limit) }
        return FollowRuns.Overview(runs: try await [runs.run(run)].compactMap(\.self), daemon: try await runs.daemon())
    }

    private static func rate(
        _ run: Run, _ last: (settled: [Int64: Int], at: ContinuousClock.Instant)?, _ now: ContinuousClock.Instant
    ) -> Int? {
        guard !run.state.isFinal, let last, let before = last.settled[run.id] else { return nil }
        return Int(Double(run.counts.settled - before) / max((now - last.at).inSeconds, 0.001))
    }

    private func page(_ overview: FollowRuns.Overview, _ rates: [Int?]) {
        var lines = [RunList(overview).text]
        for (run, rate) in zip(overview.runs, rates) {
            guard let rate else { continue }
            lines.append("run \(run.id): \(max(0, rate).grouped) settled/s\(Self.timeLeft(run, rate))")
        }
        // Home, and whatever the page before left below.
        let home = isatty(STDOUT_FILENO) == 1 ? "\u{1B}[H\u{1B}[2J" : ""
        Console.print(home + lines.joined(separator: "\n"))
    }

    private static func timeLeft(_ run: Run, _ rate: Int) -> String {
        let left = run.counts.pending + run.counts.leased
        guard run.isFrozen, rate > 0, left > 0 else { return "" }
        return ", \(WrittenDuration.text(.seconds(left / rate + 1))) left"
    }
}
