import Foundation
import GRDB
package import Model

/// Who did what, when.
enum EventLog {
    static func record(
        _ db: Database, kind: String, run: Int64?, actor: String, detail: String, files: [String: String] = [:],
        now: Timestamp
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO event (at, kind, run_id, actor, detail, files, uid, user, command, origin)
                VALUES (
                    :now, :kind, :run, :actor, :detail, :files, this_process('uid'), this_process('user'),
                    this_process('command'), this_process('origin')
                )
                """,
            arguments: [
                "now": now.milliseconds, "kind": kind, "run": run, "actor": actor, "detail": detail,
                "files": files.isEmpty ? nil : try json(files),
            ])
    }

    /// What the process that writes told of itself; registered on each writing connection.
    static func function(_ process: StoreProcess) -> DatabaseFunction {
        DatabaseFunction("this_process", argumentCount: 1) { values in
            switch String.fromDatabaseValue(values[0]) {
            case "uid": process.uid
            case "user": process.user
            case "command": process.command
            case "origin": process.origin.rawValue
            default: nil
            }
        }
    }

    private static func json(_ files: [String: String]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(files), as: UTF8.self)
    }
}

/// Something to be put on record with a run that is created, in the same transaction.
package struct EventNote: Hashable, Sendable {
    package var kind: String
    package var detail: String

    package init(kind: String, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

/// One line of the audit trail.
package struct StoreEvent: Hashable, Sendable {
    package var at: Timestamp
    /// `run_created`, `run_paused`, `guard_overridden`, `devices_pruned`, ...
    package var kind: String
    package var run: Int64?
    package var campaign: String?
    /// In whose name: a person, the scheduler, or the process that holds a run.
    package var actor: String
    package var detail: String
    /// SHA-256 in hex of the files it was about, by path.
    package var files: [String: String]
    package var process: StoreProcess
}

extension Store {
    package func recordEvent(
        kind: String, run: Int64?, actor: String, detail: String, files: [String: String] = [:], now: Timestamp
    ) async throws {
        try await write { db in
            try EventLog.record(db, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
        }
    }

    /// Oldest first.
    package func events(run: Int64) async throws -> [StoreEvent] {
        try await events(run: run, since: nil, limit: .max)
    }

    /// The latest `limit` of them, oldest first.
    ///
    /// - Parameter run: nil for all, those of no run among them.
    package func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT event.at, event.kind, event.run_id, run.campaign, event.actor, event.detail, event.files,
                        event.uid, event.user, event.command, event.origin
                    FROM event LEFT JOIN run ON run.id = event.run_id
                    WHERE (:run IS NULL OR event.run_id = :run) AND (:since IS NULL OR event.at >= :since)
                    ORDER BY event.id DESC LIMIT :limit
                    """, arguments: ["run": run, "since": since?.milliseconds, "limit": limit]
            ).map(Self.event).reversed()
        }
    }

    private static func event(_ row: Row) throws -> StoreEvent {
        let files = try (row[6] as String?).map { text in
            try JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        }
        return StoreEvent(
            at: Timestamp(milliseconds: row[0]), kind: row[1], run: row[2], campaign: row[3], actor: row[4],
            detail: row[5], files: files ?? [:],
            process: StoreProcess(
                uid: row[7], user: row[8], command: row[9],
                origin: (row[10] as String?).flatMap(StoreProcess.Origin.init) ?? .command))
    }
}
