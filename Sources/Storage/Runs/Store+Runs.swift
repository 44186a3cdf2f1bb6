import GRDB
package import Model

extension Store {
    /// The run of this occurrence, made now unless it is there: a timer, a daemon and a retried call get the same one.
    /// An existing run keeps its own definition, whatever is given here.
    package func createRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: String
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign.name
        return try await write { db in
            try db.execute(
                sql: """
                    INSERT INTO run (campaign, occurrence, state, created_at, definition_hash, definition)
                    VALUES (:campaign, :occurrence, 'scheduled', :now, :hash, :definition)
                    ON CONFLICT (campaign, occurrence) DO NOTHING
                    """,
                arguments: [
                    "campaign": campaign, "occurrence": occurrence, "now": now.milliseconds, "hash": text.hash,
                    "definition": text.json,
                ])
            let isNew = db.changesCount > 0
            let run = try Self.run(db, campaign: campaign, occurrence: occurrence)
            guard let run else { throw StoreError.noSuchRun(db.lastInsertedRowID) }
            if isNew {
                try EventLog.record(db, kind: "run_created", run: run.id, actor: actor, detail: occurrence, now: now)
            }
            return (run, isNew)
        }
    }

    package func run(_ id: Int64) async throws -> Run? {
        try await read { db in try RunRow.fetch(db, "WHERE id = :id", ["id": id]).first }
    }

    package func run(campaign: String, occurrence: String) async throws -> Run? {
        try await read { db in try Self.run(db, campaign: campaign, occurrence: occurrence) }
    }

    package func latestRun(campaign: String) async throws -> Run? {
        try await read { db in
            try RunRow.fetch(db, "WHERE campaign = :campaign ORDER BY id DESC LIMIT 1", ["campaign": campaign]).first
        }
    }

    /// Newest first.
    package func runs(limit: Int) async throws -> [Run] {
        try await read { db in try RunRow.fetch(db, "ORDER BY id DESC LIMIT :limit", ["limit": limit]) }
    }

    package func recordEvent(
        kind: String, run: Int64?, actor: String, detail: String, now: Timestamp
    ) async throws {
        try await write { db in
            try EventLog.record(db, kind: kind, run: run, actor: actor, detail: detail, now: now)
        }
    }

    /// Oldest first.
    package func events(run: Int64) async throws -> [StoreEvent] {
        try await read { db in
            try Row.fetchAll(
                db, sql: "SELECT at, kind, run_id, actor, detail FROM event WHERE run_id = :run ORDER BY id",
                arguments: ["run": run]
            ).map { row in
                StoreEvent(
                    at: Timestamp(milliseconds: row[0]), kind: row[1], run: row[2], actor: row[3], detail: row[4])
            }
        }
    }

    private static func run(_ db: Database, campaign: String, occurrence: String) throws -> Run? {
        try RunRow.fetch(
            db, "WHERE campaign = :campaign AND occurrence = :occurrence",
            ["campaign": campaign, "occurrence": occurrence]
        ).first
    }
}
