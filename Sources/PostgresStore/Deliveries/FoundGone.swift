import RelationalStore
import Model
import Store

extension FoundGone<PostgresSession> {
    /// Records the devices in order of id, as every transaction does.
    func note(_ found: [(settlement: Settlement, since: Timestamp)]) throws {
        guard !found.isEmpty else { return }
        let found = found.sorted { $0.settlement.device < $1.settlement.device }
        try db.execute(
            """
            INSERT INTO found_gone (run_id, device_id, generation, since, reason)
            SELECT $1::bigint, device, generation, since, reason
            FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
                AS given (device, generation, since, reason)
            ON CONFLICT (run_id, device_id) DO UPDATE SET
                generation = excluded.generation, since = excluded.since, reason = excluded.reason
            """, run, found.map(\.settlement.device), found.map(\.settlement.generation), found.map(\.since),
            found.map(\.settlement.reason))
    }
}
