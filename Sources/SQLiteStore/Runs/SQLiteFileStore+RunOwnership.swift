import GRDB
package import Model
import RelationalStore
import Store

extension SQLiteFileStore {
    package func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState {
        try await writeSending { db in
            let current = try RunOwner.locked(db, run)
            try current.require(owner)
            try RunOwner.heard(db, run, at: now)
            return current.state
        }
    }

    package func abandonedRuns() async throws -> [Run] {
        let owned = try await read(.short) { db in
            try RunRow.list(
                db,
                "WHERE owner IS NOT NULL OR state = '\(RunState.cancelled.rawValue)' AND finished_at IS NULL ORDER BY id"
            ).readable
        }
        return owned.filter { $0.owner.map { !isAlive($0) } ?? true }
    }

    package func runs(of sender: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE id IN (SELECT id FROM run WHERE owner = $1 UNION SELECT run_id FROM lease WHERE owner = $1)
                ORDER BY id
                """, sender
            ).readable
        }
    }

    /// Returns the owners of the run and of its leases. A file store has one sender at a time, so the caller knows that
    /// every other owner is dead.
    package func takeOverLeases(of run: Int64, besides owner: String?) async throws -> Set<String> {
        try await read(.short) { db in
            try String.fetchSet(
                db,
                sql: """
                    SELECT owner FROM run WHERE id = ? AND owner IS NOT NULL
                    UNION SELECT owner FROM lease WHERE run_id = ?
                    """, arguments: [run, run])
        }
    }

    package func ownersOnRecord() async throws -> Set<String> {
        try await read(.short) { db in
            try String.fetchSet(
                db, sql: "SELECT owner FROM run WHERE owner IS NOT NULL UNION SELECT owner FROM lease")
        }
    }
}
