import Model
import Store
import Campaigns

/// The account of a run, counted again from its deliveries.
struct SumProof {
    let run: Run
    let check: SumCheck

    var text: String {
        let counts = check.recounted
        let parts = [
            ("pending", counts.pending), ("leased", counts.leased), ("accepted", counts.accepted),
            ("rejected", counts.rejected), ("unknown", counts.unknown), ("suppressed", counts.suppressed),
        ]
        let sum = parts.map { "\($0.1.grouped) \($0.0)" }.joined(separator: " + ")
        let verdict = check.closes ? "The sums close" : "THE SUMS DO NOT CLOSE"
        return
            (["Run \(run.id), \(run.campaign): \(counts.audience.grouped) audience = \(sum)"]
            + check.problems.map { "  problem: \($0)" } + ["\(verdict)."]).joined(separator: "\n")
    }

}
