package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    package func beatBeforeClaim(_ sender: String) async throws { try await beat(sender) }

    package func requireNotLost(_ sender: String, _ db: PostgresSession) throws {
        try SenderRow(db, self).requireNotLost(sender)
    }

    package func living(_ db: PostgresSession) throws -> OwnerLiveness.IsAlive {
        let living = try LivingSenders(db, self)
        return { living($0) }
    }

    package func living(_ db: PostgresSession, at run: Int64) throws -> OwnerLiveness.IsAlive {
        try takingOverGone(db, at: run)
    }

    /// Releases leases in doubt first. Such a lease would prevent the end of the run as long as this sender is
    /// alive.
    package func settleBeforeRelease(now: Timestamp) async throws { try await releaseUnheardLeases(now: now) }

    package func released(_ run: Int64, _ state: RunState) async {
        dueBounds.forget(run: run)
        if state.isFinal { await indexFailed(run) }
    }

    /// Creates the index of failed deliveries in a separate transaction, because that reads all rows of a run, which
    /// may be large. If this fails, the list of failures is read in order of device, as for an unfinished run.
    private func indexFailed(_ run: Int64) async {
        _ = try? await write(.quick.within(.seconds(3600))) { db in try DeliveryTable(run: run).indexFailed(db) }
    }

    package func abandonedRuns() async throws -> [Run] {
        try await read(.short) { db in
            let isAlive = try LivingSenders(db, self)
            return try RunRow.list(
                db,
                """
                WHERE owner IS NOT NULL OR state = '\(RunState.cancelled.rawValue)' AND finished_at IS NULL ORDER BY id
                """
            ).readable.filter { run in
                let names = try Self.names(db, at: run.id)
                if run.state == .cancelled { return !names.contains(where: isAlive.callAsFunction) }
                guard let owner = run.owner else { return false }
                // Even if the run's owner is alive, dead participants may have left work in the run.
                return !isAlive(owner) || self.takeoverAfter != nil && names.contains { !isAlive($0) }
            }
        }
    }

    package func runs(of sender: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE id IN (
                    SELECT id FROM run WHERE owner = $1
                    UNION SELECT run_id FROM run_sender WHERE owner = $1
                    UNION SELECT run_id FROM lease WHERE owner = $1
                ) ORDER BY id
                """, sender
            ).readable
        }
    }

    package func ownersOnRecord() async throws -> Set<String> {
        try await read(.short) { db in
            Set(
                try db.all(
                    """
                    SELECT owner FROM run WHERE owner IS NOT NULL
                    UNION SELECT owner FROM run_sender UNION SELECT owner FROM lease
                    """
                ) { try $0.text(0) })
        }
    }
}
