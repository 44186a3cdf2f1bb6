import Model
import Store

/// The account of a run, counted again from its deliveries.
struct SumProof {
    let run: Run
    let check: SumCheck

    var closes: Bool { check.problems.isEmpty && check.recounted.closes && check.stored == check.recounted }

    var text: String {
        let counts = check.recounted
        let parts = [
            ("pending", counts.pending), ("leased", counts.leased), ("accepted", counts.accepted),
            ("rejected", counts.rejected), ("unknown", counts.unknown), ("suppressed", counts.suppressed),
        ]
        let sum = parts.map { "\($0.1.grouped) \($0.0)" }.joined(separator: " + ")
        let verdict = closes ? "The sums close" : "THE SUMS DO NOT CLOSE"
        return
            (["Run \(run.id), \(run.campaign): \(counts.audience.grouped) audience = \(sum)"]
            + check.problems.map { "  problem: \($0)" } + ["\(verdict)."]).joined(separator: "\n")
    }

    struct JSON: Encodable {
        var run: Int64
        var closes: Bool
        var counts: ReportJSON.Account
        var problems: [String]
    }

    var json: JSON {
        JSON(run: run.id, closes: closes, counts: ReportJSON.Account(check.recounted), problems: check.problems)
    }
}
