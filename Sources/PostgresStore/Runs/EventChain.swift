import Model
import Store
import RelationalStore

/// Links each event to all earlier events, so that removing, changing or inserting one is detected.
///
/// The hash of an event is SHA-256 over the previous hash and the event's row as text; the server computes it. The
/// last hash and the last event's number are stored separately, so that removing the last event is also detected. A
/// user who can write to the database and knows this scheme can forge the whole chain. The chain reveals mistakes
/// and manual repairs. It is part of the schema, and frozen with it.
enum EventChain {
    private static let columns = [
        "id", "at", "kind", "run_id", "actor", "detail", "files", "uid", "\"user\"", "command", "origin",
    ]

    /// `quote_nullable` ensures that no two different rows have the same text.
    private static func text(_ columns: [String]) -> String {
        columns.map { "quote_nullable(\($0))" }.joined(separator: " || ',' || ")
    }

    private static func hash(after last: String, _ text: String) -> String {
        "sha256(\(last) || convert_to(\(text), 'UTF8'))"
    }

    /// Appends an event and returns its number.
    ///
    /// - Parameter number: the number of an event that another store has given; `nil` for the next one. There are gaps
    ///   before and after the restore of a backup.
    static func append(
        _ db: PostgresSession, _ at: Timestamp, _ kind: String, _ run: Int64?, _ actor: String, _ detail: String,
        _ files: String?, _ uid: Int64?, _ user: String?, _ command: String?, _ origin: String?, number: Int64? = nil
    ) throws -> Int64 {
        let event = try db.first(
            """
            WITH last AS MATERIALIZED (SELECT events, hash FROM event_chain FOR NO KEY UPDATE),
            new AS MATERIALIZED (
                SELECT last.hash AS before, coalesce($11, last.events + 1) AS id, $1::bigint AS at, $2::text AS kind,
                    $3::bigint AS run_id, $4::text AS actor, $5::text AS detail, $6::text AS files, $7::bigint AS uid,
                    $8::text AS "user", $9::text AS command, $10::text AS origin
                FROM last
            ),
            written AS (
                INSERT INTO event (id, at, kind, run_id, actor, detail, files, uid, "user", command, origin, hash)
                SELECT id, at, kind, run_id, actor, detail, files, uid, "user", command, origin,
                    \(hash(after: "before", text(columns)))
                FROM new RETURNING id, hash
            )
            UPDATE event_chain SET events = written.id, hash = written.hash FROM written RETURNING written.id
            """, at, kind, run, actor, detail, files, uid, user, command, origin, number
        ) { try $0.int64(0) }
        guard let event else { throw StoreDamage("the end of the audit log is missing") }
        return event
    }

    /// Returns every place where the chain is broken.
    static func faults(_ db: PostgresSession) throws -> Verification.Check {
        var faults: [StoreFault] = []
        var count = 0
        try db.each(
            """
            SELECT id, run_id, kind, hash = \(hash(after: "before", text(columns))) FROM (
                SELECT *, coalesce(lag(hash) OVER (ORDER BY id), '') AS before FROM event
            ) AS tied ORDER BY id
            """
        ) { row in
            count += 1
            guard try !row.bool(3) else { return }
            faults.append(
                StoreFault(
                    run: try row.int64OrNil(1),
                    "event \(try row.int64(0)) (\(try row.text(2))) was changed, or an earlier event is missing"
                ))
        }
        let head = try db.first(
            """
            SELECT events, coalesce(last.id, 0), event_chain.hash = coalesce(last.hash, '')
            FROM event_chain LEFT JOIN (SELECT id, hash FROM event ORDER BY id DESC LIMIT 1) AS last ON TRUE
            """
        ) { (try $0.int64(0), try $0.int64(1), try $0.bool(2)) }
        let (written, last, isLast) = head ?? (0, 0, false)
        if written != last || !isLast {
            faults.append(
                StoreFault(
                    "event \(written) was the last one written, but "
                        + (written == last ? "it is another one now" : "event \(last) is the last one now")))
        }
        return Verification.Check(EventRecord.name, EventRecord.promise, faults: faults, compared: count)
    }
}
