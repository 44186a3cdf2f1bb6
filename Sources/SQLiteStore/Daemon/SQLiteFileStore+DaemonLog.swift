import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func becomeDaemon(owner: String, now: Timestamp) async throws -> DaemonHeartbeat? {
        let isAlive = isAlive
        let status = try StoredJSON.text(DaemonStatus())
        return try await write { db in
            if let other = try Self.heartbeat(db), other.owner != owner, isAlive(other.owner) { return other }
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO daemon (id, owner, started_at, heartbeat_at, status)
                    VALUES (1, :owner, :now, :now, :status)
                    """, arguments: ["owner": owner, "now": now.milliseconds, "status": status])
            return nil
        }
    }

    package func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool {
        let status = try StoredJSON.text(status)
        return try await write { db in
            try db.execute(
                sql: "UPDATE daemon SET heartbeat_at = :now, status = :status WHERE owner = :owner",
                arguments: ["owner": owner, "now": now.milliseconds, "status": status])
            return db.changesCount > 0
        }
    }

    package func resignDaemon(owner: String) async throws {
        try await write { db in
            try db.execute(sql: "DELETE FROM daemon WHERE owner = :owner", arguments: ["owner": owner])
        }
    }

    package func daemon() async throws -> DaemonHeartbeat? {
        let isAlive = isAlive
        return try await read(.short) { db in
            try Self.heartbeat(db).flatMap { isAlive($0.owner) ? $0 : nil }
        }
    }

    private static func heartbeat(_ db: Database) throws -> DaemonHeartbeat? {
        let row = try Row.fetchOne(db, sql: "SELECT owner, started_at, heartbeat_at, status FROM daemon")
        return row.map { row in
            DaemonHeartbeat(
                owner: row[0], startedAt: Timestamp(milliseconds: row[1]), heartbeatAt: Timestamp(milliseconds: row[2]),
                status: ReadableRows.value(row[3], otherwise: DaemonStatus()))
        }
    }
}
