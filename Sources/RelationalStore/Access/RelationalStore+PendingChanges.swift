package import Model
package import Store

extension RelationalStore {
    package func holdChanges(_ texts: [TextToHold], most: Int) async throws -> HoldResult {
        try await transaction(.durable) { db in
            // The lock lets one transaction at a time count the changes. There are only a few changes per day, so it
            // costs little.
            try db.lock(table: "pending_change")
            for (index, text) in texts.enumerated() {
                let there = try db.first(
                    "SELECT id FROM pending_change WHERE kind = $1 AND name = $2", text.change.kind, text.change.name
                ) { try $0.int64(0) }
                guard there == text.known else { return .changedMeanwhile(at: index) }
            }
            let added = texts.count { !$0.withdraws && $0.known == nil }
            let removed = texts.count { $0.withdraws && $0.known != nil }
            let count = try db.first("SELECT count(*) FROM pending_change") { try $0.int(0) } ?? 0
            guard added == 0 || count + added - removed <= most else { return .tooMany }
            return .held(try texts.map { try Self.hold($0, db) })
        }
    }

    /// Stores one text, or removes the change that it withdraws.
    private static func hold(_ text: TextToHold, _ db: Session) throws -> PendingChange? {
        var held = text.change
        if let known = text.known { try db.execute("DELETE FROM pending_change WHERE id = $1", known) }
        guard !text.withdraws else {
            if text.known != nil { try record(.changeRejected, text, db) }
            return nil
        }
        let account = held.author.recordedAccount
        held.id =
            try db.first(
                """
                INSERT INTO pending_change (kind, name, text, hash, base, author, uid, account, origin, asked_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id
                """, held.kind, held.name, held.text, held.hash, held.base, held.author.name,
                account.uid, account.user, held.author.origin.rawValue, held.askedAt
            ) { try $0.int64(0) } ?? 0
        try record(.changeHeld, text, db)
        return held
    }

    private static func record(_ kind: EventKind, _ text: TextToHold, _ db: Session) throws {
        try db.record(
            kind, run: nil, by: text.change.author, text.detail, files: text.files, now: text.change.askedAt)
    }

    package func pendingChanges() async throws -> [PendingChange] {
        try await snapshot(.short) { db in
            try db.all("SELECT \(Self.changeColumns), '' FROM pending_change ORDER BY id", read: Self.change)
        }
    }

    package func pendingChange(_ id: Int64) async throws -> PendingChange? {
        try await snapshot(.short) { db in
            try db.first("SELECT \(Self.changeColumns), text FROM pending_change WHERE id = $1", id, read: Self.change)
        }
    }

    package func endChanges(
        _ changes: [ChangeToEnd], _ kind: EventKind, by actor: Actor, now: Timestamp,
        _ act: @escaping @Sendable () throws -> Void
    ) async throws -> Int64? {
        try await transaction(.durable) { db in
            try db.lock(table: "pending_change")
            let waiting = Set(try db.all("SELECT id FROM pending_change") { try $0.int64(0) })
            if let gone = changes.first(where: { !waiting.contains($0.id) }) { return gone.id }
            try act()
            for change in changes {
                try db.execute("DELETE FROM pending_change WHERE id = $1", change.id)
                try db.record(kind, run: nil, by: actor, change.detail, files: change.files, now: now)
            }
            return nil
        }
    }

    private static var changeColumns: String { "id, kind, name, hash, base, author, uid, account, origin, asked_at" }

    private static func change(_ row: Session.Fields) throws -> PendingChange {
        PendingChange(
            id: try row.int64(0), kind: try row.text(1), name: try row.text(2), text: try row.text(10),
            hash: try row.text(3), base: try row.textOrNil(4),
            author: Actor(
                try row.text(5), uid: try row.int64OrNil(6), user: try row.textOrNil(7),
                origin: Actor.Origin(rawValue: try row.text(8)) ?? .api, command: nil),
            askedAt: try row.timestamp(9))
    }
}
