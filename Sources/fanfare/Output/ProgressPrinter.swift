import Foundation
import Model
import Sending

/// Shows a run going on: one line that renews itself on a terminal, a plain line every ten seconds elsewhere.
struct ProgressPrinter: Sendable {
    private static let terminalInterval: Duration = .milliseconds(200)
    private static let plainInterval: Duration = .seconds(10)

    let control: RunControl

    /// Prints until cancelled.
    func print() async {
        let clock = ContinuousClock()
        let start = clock.now
        let settledBefore = control.counts.settled
        let interval = Console.isTerminal ? Self.terminalInterval : Self.plainInterval
        while true {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            let line = Self.line(control.counts, settledBefore: settledBefore, elapsed: clock.now - start)
            Console.isTerminal ? Console.progress(line) : Console.note(line)
        }
    }

    /// `12,400 of 20,000 sent (62.0 %), 9,800/s, 31 rejected, 0 unknown, 1s left`.
    static func line(_ counts: DeliveryCounts, settledBefore: Int, elapsed: Duration) -> String {
        let rate = Double(counts.settled - settledBefore) / max(elapsed.inSeconds, 0.001)
        let left = counts.audience - counts.settled
        let timeLeft = rate > 0 ? WrittenDuration.text(.seconds(Int64((Double(left) / rate).rounded(.up)))) : "-"
        return "\(counts.settled.grouped) of \(counts.audience.grouped) settled "
            + "(\(counts.settled.share(of: counts.audience))), \(Int(rate).grouped)/s, "
            + "\(counts.accepted.grouped) accepted, \(counts.rejected.grouped) rejected, "
            + "\(counts.unknown.grouped) unknown, \(timeLeft) left"
    }
}
