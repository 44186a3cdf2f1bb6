import Foundation
import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Takes the post of the store's daemon, or says who has it: there is one at a time.
    package func becomeDaemon(owner: String, now: Timestamp, staleAfter: Duration) async throws -> DaemonHeartbeat? {
        let hasEnded = hasEnded
        let status = try Self.text(DaemonStatus())
        return try await write { db in
            if let sign = try Self.sign(db), sign.owner != owner, now < sign.heartbeatAt + staleAfter,
                !hasEnded(sign.owner)
            {
                return sign
            }
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO daemon (id, owner, started_at, heartbeat_at, status)
                    VALUES (1, :owner, :now, :now, :status)
                    """, arguments: ["owner": owner, "now": now.milliseconds, "status": status])
            return nil
        }
    }

    /// Still there. False: somebody else has the post now.
    package func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool {
        let status = try Self.text(status)
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

    /// The daemon that is alive, if there is one.
    package func daemon(now: Timestamp, staleAfter: Duration) async throws -> DaemonHeartbeat? {
        let hasEnded = hasEnded
        return try await read { db in
            guard let sign = try Self.sign(db), now < sign.heartbeatAt + staleAfter, !hasEnded(sign.owner) else {
                return nil
            }
            return sign
        }
    }

    private static func sign(_ db: Database) throws -> DaemonHeartbeat? {
        let row = try Row.fetchOne(db, sql: "SELECT owner, started_at, heartbeat_at, status FROM daemon")
        return try row.map { row in
            DaemonHeartbeat(
                owner: row[0], startedAt: Timestamp(milliseconds: row[1]), heartbeatAt: Timestamp(milliseconds: row[2]),
                status: try JSONDecoder().decode(DaemonStatus.self, from: Data((row[3] as String).utf8)))
        }
    }

    private static func text(_ status: DaemonStatus) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(status), as: UTF8.self)
    }
}
