import Foundation
import Model
import Store
import Daemon

/// Runs as they go on: a page that renews itself on a terminal, a page after the other elsewhere.
struct StatusWatch {
    let store: any AllRoles
    /// Nil: the latest runs.
    let run: Int64?
    let limit: Int
    let interval: Duration

    /// Until the one run is over, or cancelled.
    func show() async throws {
        let clock = ContinuousClock()
        var last: (settled: [Int64: Int], at: ContinuousClock.Instant)?
        while true {
            let runs = try await runs()
            let now = clock.now
            let rates = runs.map { run in Self.rate(run, last, now) }
            try await page(runs, rates)
            last = (Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.counts.settled) }), now)
            if run != nil, runs.allSatisfy(\.state.isFinal) { return }
            try await Task.sleep(for: interval)
        }
    }

    private func runs() async throws -> [Run] {
        guard let run else { return try await store.runs(limit: limit) }
        return try await [store.run(run)].compactMap(\.self)
    }

    private static func rate(
        _ run: Run, _ last: (settled: [Int64: Int], at: ContinuousClock.Instant)?, _ now: ContinuousClock.Instant
    ) -> Int? {
        guard !run.state.isFinal, let last, let before = last.settled[run.id] else { return nil }
        return Int(Double(run.counts.settled - before) / max((now - last.at).inSeconds, 0.001))
    }

    private func page(_ runs: [Run], _ rates: [Int?]) async throws {
        let daemon = try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter)
        var lines = [RunList(runs: runs, daemon: daemon).text]
        for (run, rate) in zip(runs, rates) {
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
