import GRDB
import Store
package import Model

extension SQLiteFileStore {
    /// Writes the run's audience down as deliveries: one read snapshot says who is in, batches of some thousand are
    /// committed while it lasts, and `onBatch` is told the rows of each, on the thread that reads. Sending may start
    /// with the first. Returns the run's account; the run is frozen with the last batch.
    ///
    /// The holdout of the campaign is written down as suppressed, and each other device's variant with its delivery, see
    /// ``CampaignSplit``.
    ///
    /// Cancelled or crashed, it may be called again: it goes on behind the highest device written. The rest is then
    /// selected from a new snapshot, so that devices changed in between are seen as they are then.
    package func freeze(
        _ run: Int64, now: Timestamp, onBatch: @escaping @Sendable (Int) -> Void
    ) async throws -> DeliveryCounts {
        let pool = pool
        return try await read { db in
            let frozen = try RunRow.require(db, run)
            guard !frozen.isFrozen else { return frozen.counts }
            return try AudienceSelection.with(frozen.definition.campaign, now: now, db) { selection in
                var source = try FreezeSource(db, frozen, selection)
                defer { source.close() }
                while true {
                    let batch = try source.nextBatch()
                    let counts = try pool.write { writer in
                        try FreezeBatch(writer, run: run, now: now).insert(batch, isLast: source.isAtEnd)
                    }
                    if !batch.isEmpty { onBatch(batch.count) }
                    if source.isAtEnd { return counts }
                }
            }
        }
    }
}
