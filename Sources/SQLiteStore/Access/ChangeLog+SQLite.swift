import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func holdChange(
        _ change: PendingChange, insteadOf known: Int64?, most: Int, detail: String
    ) async throws -> HoldResult {
        try await writeDurably { db in
            let there = try Int64.fetchOne(
                db, sql: "SELECT id FROM pending_change WHERE kind = :kind AND name = :name",
                arguments: ["kind": change.kind, "name": change.name])
            guard there == known else { return .changedMeanwhile }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM pending_change") ?? 0
            guard known != nil || count < most else { return .tooMany }
            try db.execute(sql: "DELETE FROM pending_change WHERE id = :id", arguments: ["id": known])
            let account = change.author.account
            try db.execute(
                sql: """
                    INSERT INTO pending_change (kind, name, text, hash, base, author, uid, account, origin, asked_at)
                    VALUES (:kind, :name, :text, :hash, :base, :author, :uid, :user, :origin, :now)
                    """,
                arguments: [
                    "kind": change.kind, "name": change.name, "text": change.text, "hash": change.hash,
                    "base": change.base, "author": change.author.name, "uid": account?.uid,
                    "user": account?.user ?? change.author.signedInAs, "origin": change.author.origin.rawValue,
                    "now": change.askedAt.milliseconds,
                ])
            var held = change
            held.id = db.lastInsertedRowID
            try EventLog.record(
                db, kind: .changeHeld, run: nil, actor: change.author, detail: detail, now: change.askedAt)
            return .held(held)
        }
    }

    package func pendingChanges() async throws -> [PendingChange] {
        try await read(.short) { db in
            try Row.fetchAll(db, sql: "SELECT \(Self.changeColumns), '' FROM pending_change ORDER BY id")
                .map(Self.change)
        }
    }

    package func pendingChange(_ id: Int64) async throws -> PendingChange? {
        try await read(.short) { db in
            try Row.fetchOne(
                db, sql: "SELECT \(Self.changeColumns), text FROM pending_change WHERE id = :id",
                arguments: ["id": id]
            ).map(Self.change)
        }
    }

    package func endChange(
        _ id: Int64, _ kind: EventKind, by actor: Actor, detail: String, now: Timestamp
    ) async throws -> Bool {
        try await writeDurably { db in
            try db.execute(sql: "DELETE FROM pending_change WHERE id = :id", arguments: ["id": id])
            guard db.changesCount > 0 else { return false }
            try EventLog.record(db, kind: kind, run: nil, actor: actor, detail: detail, now: now)
            return true
        }
    }

    private static let changeColumns = "id, kind, name, hash, base, author, uid, account, origin, asked_at"

    private static func change(_ row: Row) throws -> PendingChange {
        PendingChange(
            id: row[0], kind: row[1], name: row[2], text: row[10], hash: row[3], base: row[4],
            author: Actor(
                row[5], uid: row[6], user: row[7], origin: Actor.Origin(rawValue: row[8]) ?? .api, command: nil),
            askedAt: Timestamp(milliseconds: row[9]))
    }
}
