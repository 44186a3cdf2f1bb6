package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    package func becomeDaemon(owner: String, now: Timestamp) async throws -> DaemonHeartbeat? {
        let status = try StoredJSON.text(DaemonStatus())
        try await beat(owner)
        return try await write(.quick) { db in
            let gone = try SenderRow(db, self).takeOver(Set([Self.heartbeat(db)?.owner].compactMap(\.self)))
            // The lock lets one sender check at a time. If two senders find no daemon, the first one becomes the
            // daemon.
            try db.run("LOCK TABLE daemon IN SHARE ROW EXCLUSIVE MODE")
            if let other = try Self.heartbeat(db), other.owner != owner, !gone.contains(other.owner) { return other }
            try SenderRow(db, self).requireNotLost(owner)
            try db.execute(
                """
                INSERT INTO daemon (id, owner, started_at, heartbeat_at, status) VALUES (1, $1, $2, $2, $3)
                ON CONFLICT (id) DO UPDATE SET
                    owner = excluded.owner, started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
                    status = excluded.status
                """, owner, now, status)
            return nil
        }
    }

    package func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool {
        let status = try StoredJSON.text(status)
        try await beat(owner)
        return try await write(.quick) { db in
            try db.execute(
                "UPDATE daemon SET heartbeat_at = $2, status = $3 WHERE owner = $1", owner, now, status) > 0
        }
    }

    package func resignDaemon(owner: String) async throws {
        try await write(.quick) { db in try db.execute("DELETE FROM daemon WHERE owner = $1", owner) }
    }

    package func daemon() async throws -> DaemonHeartbeat? {
        try await read(.short) { db in
            let isAlive = try LivingSenders(db, self)
            return try Self.heartbeat(db).flatMap { isAlive($0.owner) ? $0 : nil }
        }
    }

    private static func heartbeat(_ db: PostgresSession) throws -> DaemonHeartbeat? {
        try db.first("SELECT owner, started_at, heartbeat_at, status FROM daemon") { row in
            DaemonHeartbeat(
                owner: try row.text(0), startedAt: try row.timestamp(1), heartbeatAt: try row.timestamp(2),
                status: ReadableRows.value(try row.text(3), otherwise: DaemonStatus()))
        }
    }
}
