import Campaigns
import CoreMetrics
import Model

/// Counts the reports of apps.
enum FeedbackCounters {
    /// Creates all counters, so that a rate is known from the first report.
    static func start() {
        for kind in FeedbackKind.allCases.map(Optional.some) + [nil] {
            for result in FeedbackTally.Result.allCases where kind != nil || result == .rejected {
                counter(FeedbackTally(kind: kind, result: result)).increment(by: 0)
            }
        }
        opens.increment(by: 0)
    }

    static func count(_ result: FeedbackResult) {
        for (tally, count) in result.tally {
            counter(tally).increment(by: count)
            if tally.kind == .opened, tally.result == .recorded { opens.increment(by: count) }
        }
    }

    private static var opens: Counter { Counter(label: "fanfare_opens_total") }

    private static func counter(_ tally: FeedbackTally) -> Counter {
        Counter(
            label: "fanfare_events_total",
            dimensions: [("type", tally.kind?.name ?? "unreadable"), ("result", tally.result.rawValue)])
    }
}
