import GRDB
import Model
import RelationalStore
import Store

extension FoundGone<Database> {
    func note(_ found: [(settlement: Settlement, since: Timestamp)]) throws {
        try db.execute(
            """
            INSERT INTO found_gone (run_id, device_id, generation, since, reason) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (run_id, device_id) DO UPDATE SET
                generation = excluded.generation, since = excluded.since, reason = excluded.reason
            """,
            each: found.map { [run, $0.settlement.device, $0.settlement.generation, $0.since, $0.settlement.reason] })
    }
}
