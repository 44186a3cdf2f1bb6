import Campaigns
import Foundation
import Model
import Sending
import Store

/// Shows the progress of a run: one line that updates itself on a terminal, or a plain line every ten seconds. An
/// unchanged plain line is repeated only every five minutes, because it goes to a log or a mail. If few deliveries are
/// settled, the line says what the remaining ones wait for.
struct ProgressPrinter: Sendable {
    private static let terminalInterval: Duration = .milliseconds(200)
    private static let plainInterval: Duration = .seconds(10)
    private static let repeatInterval: Duration = .seconds(300)

    let control: RunControl
    let now: @Sendable () -> Timestamp
    /// The query for what the deliveries wait for. It is made about once a second at most.
    let waits: @Sendable () async throws -> RunWaits

    /// Prints until cancelled.
    func print() async {
        let clock = ContinuousClock()
        let start = clock.now
        let sentBefore = control.progress.counts.sent
        let interval = Console.isTerminal ? Self.terminalInterval : Self.plainInterval
        var tail = ProgressTail()
        var printed: (line: String, at: ContinuousClock.Instant)?
        while true {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            let counts = control.progress.counts
            if tail.wants(counts, after: clock.now - start) {
                // If the store is busy, this line omits the waits.
                tail.took((try? await waits()) ?? RunWaits(), now: now())
            }
            let line = Self.line(
                counts, sentBefore: sentBefore, elapsed: clock.now - start,
                waits: WaitsText(tail.waits, control.storeBackoff.wait, now: now()).sentences)
            if Console.isTerminal {
                BriefNote.sayIfIdle { Console.progress(line) }
            } else if printed?.line != line || clock.now - (printed?.at ?? start) >= Self.repeatInterval {
                BriefNote.sayIfIdle { Console.note(line) }
                printed = (line, clock.now)
            }
        }
    }

    /// Returns `12,400 of 20,000 settled (62.0 %), 9,800/s, 12,369 accepted, 31 rejected, 0 unknown, 1s remaining`. In
    /// place of the rate and the remaining time it may say what the deliveries wait for.
    static func line(
        _ counts: DeliveryCounts, sentBefore: Int, elapsed: Duration, waits: [String] = []
    ) -> String {
        let settled =
            "\(counts.settled.grouped) of \(counts.audience.grouped) settled "
            + "(\(counts.settled.share(of: counts.audience)))"
        let outcomes =
            "\(counts.accepted.grouped) accepted, \(counts.rejected.grouped) rejected, "
            + "\(counts.unknown.grouped) unknown"
        let left = counts.audience - counts.settled
        // All remaining deliveries are in flight, so the rate so far does not predict when the responses come.
        let awaited =
            counts.leased == left ? ["\(left.grouped) \(left == 1 ? "waits" : "wait") for APNs' response"] : []
        let rest = waits.isEmpty ? awaited : waits
        guard left == 0 || rest.isEmpty else { return (["\(settled), \(outcomes)"] + rest).joined(separator: "; ") }
        let rate = Double(counts.sent - sentBefore) / max(elapsed.inSeconds, 0.001)
        let timeLeft = rate > 0 ? WrittenDuration.text(.seconds(Int64((Double(left) / rate).rounded(.up)))) : "-"
        return "\(settled), \(Int(rate.rounded()).grouped)/s, \(outcomes), \(timeLeft) remaining"
    }
}

/// Decides when to query what a run's remaining deliveries wait for. While few are settled, this is every second, or
/// every 10 s for waits far in the future.
struct ProgressTail {
    /// The number of deliveries settled per second below which the waits are queried.
    static let littleMax = 1000
    private static let askEvery: Duration = .seconds(1)
    private static let askSeldom: Duration = .seconds(10)
    private static let farAway: Duration = .seconds(60)

    private(set) var waits = RunWaits()
    private var looked: (settled: Int, at: Duration)?
    private var askedAt: Duration?
    private var pause = askEvery

    /// - Parameter time: the time since any fixed moment.
    mutating func wants(_ counts: DeliveryCounts, after time: Duration) -> Bool {
        let last = looked ?? (counts.settled, time)
        if looked == nil { looked = last }
        let elapsed = time - last.at
        guard elapsed >= .seconds(1) else { return false }
        looked = (counts.settled, time)
        let isLittle = Double(counts.settled - last.settled) < elapsed.inSeconds * Double(Self.littleMax)
        guard isLittle, counts.settled < counts.audience else {
            waits = RunWaits()
            askedAt = nil
            return false
        }
        if let askedAt, time - askedAt < pause { return false }
        askedAt = time
        return true
    }

    mutating func took(_ waits: RunWaits, now: Timestamp) {
        self.waits = waits
        let isFar = waits.holds.isEmpty && waits.groups.first.map { $0.first - now > Self.farAway } ?? false
        pause = isFar ? Self.askSeldom : Self.askEvery
    }
}
