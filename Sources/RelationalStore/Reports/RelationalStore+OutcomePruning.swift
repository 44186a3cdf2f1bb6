package import Model
package import Store

extension RelationalStore {
    package func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> OutcomePruneCounts {
        var counts = OutcomePruneCounts()
        func record(_ suffix: String = "") async throws {
            guard !dryRun, counts.runs > 0 else { return }
            let detail = "\(counts.deliveries) of \(counts.runs.counted("run"))\(suffix)"
            try await recordEvent(kind: .outcomesPruned, run: nil, actor: actor, detail: detail, files: [:], now: now)
        }
        do {
            for (run, deliveries) in try await runsToPrune(finishedBefore: moment) {
                try Task.checkCancellation()
                var drop = OutcomeDrop.dropped(deliveries: deliveries)
                if !dryRun {
                    try await summarizeOutcomes(run: run)
                    drop = try await dropOutcomes(of: run, now: now)
                }
                counts.add(drop, wasEmpty: deliveries == 0)
            }
        } catch {
            // What is deleted is on record, even if the rest is not.
            try? await record("; interrupted")
            throw error
        }
        try await record()
        if !dryRun { try await pruneCaps(at: now) }
        return counts
    }

    /// Returns the runs to prune, including those that were partly pruned before.
    private func runsToPrune(finishedBefore moment: Timestamp) async throws -> [(run: Int64, deliveries: Int)] {
        try await snapshot(.short) { db in
            try db.all(
                """
                SELECT id, audience FROM run
                WHERE finished_at < $1 AND owner IS NULL AND \(Session.dialect.hasDeliveries) ORDER BY id
                """, moment
            ) { (try $0.int64(0), try $0.int(1)) }
        }
    }
}

extension OutcomePruneCounts {
    fileprivate mutating func add(_ drop: OutcomeDrop, wasEmpty: Bool) {
        switch drop {
        case .dropped(let dropped):
            runs += wasEmpty ? 0 : 1
            deliveries += dropped
        case .unbalanced: unbalanced += 1
        case .inUse: inUse += 1
        case .droppedBefore: break
        }
    }
}

extension SQLDialect {
    /// The condition that any delivery of a run still exists.
    fileprivate var hasDeliveries: String {
        word("EXISTS (SELECT 1 FROM delivery WHERE delivery.run_id = run.id)", "outcomes_pruned_at IS NULL")
    }
}
