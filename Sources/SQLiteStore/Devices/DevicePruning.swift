import GRDB
import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func pruneCandidates(
        _ policy: PrunePolicy, after: Int64
    ) async throws -> [(device: Int64, reason: PrunePolicy.Reason)] {
        try await read { db in
            try DevicePruning(policy: policy).candidates(db, after: after, limit: StoreLimits.pruneBatchRows)
        }
    }

    package func prune(_ devices: [Int64], _ policy: PrunePolicy) async throws -> [PrunePolicy.Reason] {
        let pruning = DevicePruning(policy: policy)
        return try await write { db in try devices.compactMap { try pruning.delete($0, db) } }
    }
}

/// Finds and deletes devices that are no longer needed. Their deliveries stay.
struct DevicePruning {
    typealias Reason = PrunePolicy.Reason

    let policy: PrunePolicy

    /// Returns the matching devices with an id above `after`, in order of id.
    func candidates(_ db: Database, after: Int64, limit: Int) throws -> [(device: Int64, reason: Reason)] {
        let rows = try statement(db, where: "device.id > :after ORDER BY device.id LIMIT :limit")
        defer { rows.reset() }
        try rows.bind(after, rows.parameter(":after"))
        try rows.bind(Int64(limit), rows.parameter(":limit"))
        var found: [(device: Int64, reason: Reason)] = []
        while try rows.step() { found.append((rows.int64(0), Self.reason(rows))) }
        let capped = try CapLedger(db).counting(found.map(\.device), at: policy.now)
        return found.map { ($0.device, capped.contains($0.device) ? .kept : $0.reason) }
    }

    /// Deletes a device. Returns `nil` if it no longer matches, because it was registered or seen in the meantime.
    func delete(_ device: Int64, _ db: Database) throws -> Reason? {
        let rows = try statement(db, where: "device.id = :device")
        try rows.bind(device, rows.parameter(":device"))
        let reason = try rows.step() ? Self.reason(rows) : nil
        rows.reset()
        guard let reason, reason != .kept else { return reason }
        guard try CapLedger(db).counting([device], at: policy.now).isEmpty else { return .kept }
        try Self.run(Self.deletions, device, db)
        return reason
    }

    static func run(_ changes: [String], _ device: Int64, _ db: Database) throws {
        for sql in changes {
            let change = try RowStatement(db, sql)
            try change.bind(device, change.parameter(":device"))
            try change.run()
        }
    }

    /// The statements that delete a device. The schema's cascade also deletes its tags, memberships and old tokens.
    static let deletions = [
        """
        UPDATE segment SET members = members - 1
        WHERE id IN (SELECT segment_id FROM segment_member WHERE device_id = :device)
        """,
        "DELETE FROM proven_token WHERE device_id = :device",
        "DELETE FROM silent_ledger WHERE device_id = :device",
        "DELETE FROM device WHERE id = :device",
    ]

    private static func reason(_ rows: RowStatement) -> Reason {
        PrunePolicy.reason(isGone: rows.int64(1) != 0, hasCountingPush: rows.int64(2) != 0)
    }

    /// Prepares the query for devices to prune. A device without `last_seen_at` and `registered_at` is pruned only
    /// if it is gone.
    private func statement(_ db: Database, where condition: String) throws -> RowStatement {
        let rows = try RowStatement(
            db,
            """
            SELECT
                device.id, \(policy.goneCondition) AND coalesce(device.status_at < :gone_before, FALSE),
                EXISTS (
                    SELECT 1 FROM silent_ledger
                    WHERE silent_ledger.device_id = device.id AND (settled_at IS NULL OR settled_at > :counting)
                )
            FROM device
            WHERE (:topic IS NULL OR topic_id = (SELECT id FROM topic WHERE name = :topic))
                AND (
                    \(policy.goneCondition) AND device.status_at < :gone_before
                    OR max(
                        coalesce(last_seen_at, registered_at), coalesce(registered_at, last_seen_at)
                    ) < :not_seen_since
                )
                AND \(condition)
            """)
        try rows.bind(policy.topic, rows.parameter(":topic"))
        try rows.bind(policy.goneBefore?.milliseconds, rows.parameter(":gone_before"))
        try rows.bind(policy.notSeenSince?.milliseconds, rows.parameter(":not_seen_since"))
        try rows.bind(policy.countingSince.milliseconds, rows.parameter(":counting"))
        return rows
    }
}
