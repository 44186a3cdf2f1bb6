import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        let counts: DeliveryCounts? = try await freezeQueue.run(for: "run \(run)", waitingAtMost: FreezeDelayed.waitMax)
        {
            let frozen = try await writeDown(run, by: owner, now: now, onBatch: onBatch)
            return frozen.isFrozen ? frozen.counts : try await endFreeze(frozen, by: owner, now: now)
        }
        guard let counts else { throw FreezeDelayed(atOnceMax: StoreLimits.freezesMax) }
        return counts
    }

    /// Writes the deliveries, unless the run is frozen. Returns the run as it was before. The caller has waited for its
    /// turn, so a connection is free.
    private func writeDown(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> Run {
        try await freezeConnections.read { [self] db in
            let frozen = try RunRow.require(db, run)
            guard !frozen.isFrozen else { return frozen }
            try AnalystAudience.with(frozen.definition.campaign, now: now, db) { analyst in
                let selection = try AudienceSelection.of(frozen.definition, analyst: analyst, now: now, db)
                let grown = try AudienceGrew.found(frozen, db) {
                    var (source, pending) = (try FreezeSource(db, frozen, selection), 0)
                    defer { source.close() }
                    while let batch = try source.nextBatch() { pending += batch.change.pending }
                    return pending
                }
                if let grown {
                    try transaction(.ofSenders) { try grown.pause($0, owner: owner, now: now) }
                    throw grown
                }
                var source = try FreezeSource(db, frozen, selection)
                defer { source.close() }
                while let batch = try source.nextBatch() {
                    try transaction(.ofSenders) { writer in
                        // This prevents two simultaneous freezes from each writing the same deliveries.
                        try RunOwner.locked(writer, run).require(owner)
                        try batch.insert(into: writer, run: run, at: now)
                    }
                    onBatch(batch.summary)
                }
            }
            return frozen
        }
    }

    /// Leases with `synchronous` FULL, which costs one sync of the log per chunk.
    package func lease(_ request: LeaseRequest) async throws -> Lease {
        var request = request
        let limit = max(1, request.limit)
        var round = LeaseRound()
        request.limit = limit
        while true {
            let asked = request
            let (lease, isExhausted) = try await writeDurably(patience: .ofSenders) { db in
                try LeaseTransaction(db, asked).takeLease()
            }
            if let lease = round.add(lease, isExhausted: isExhausted, afterLooking: asked.limit) { return lease }
            request.after = lease.cursor
            request.limit = round.limit(limit)
        }
    }

    package func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        try await writeSending { db in
            let batch = try SettlementBatch(db, run: run, now: now)
            return try batch.record(settlements)
        }
    }
}
