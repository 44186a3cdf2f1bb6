import Foundation
import GRDB
import Platform
import RelationalStore
import Store

/// Links each event to all earlier events, so that removing, changing or inserting one is detected.
///
/// The hash of an event is SHA-256 over the previous hash and the event's row as text. The last hash and the number of
/// events are stored separately, so that removing the last event is also detected. A person who can write to the file
/// and knows this scheme can forge the whole chain. The chain detects mistakes and manual repairs. It is part of the
/// schema, and frozen with it.
struct EventChain {
    /// `quote` never gives two different rows the same text.
    private static let text = [
        "id", "at", "kind", "run_id", "actor", "detail", "files", "uid", "user", "command", "origin",
    ]
    .map { "quote(\($0))" }.joined(separator: " || ',' || ")

    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Appends an event to the chain. Call it once for each event, after its insertion.
    func append(_ event: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT (SELECT hash FROM event_chain), \(Self.text) FROM event WHERE id = :event"),
            arguments: ["event": event])
        guard let row else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "no event \(event)") }
        let hash = Self.hash(after: row[0], row[1])
        try db.cachedStatement(sql: "UPDATE event SET hash = :hash WHERE id = :event")
            .execute(arguments: ["event": event, "hash": hash])
        try db.cachedStatement(sql: "UPDATE event_chain SET events = events + 1, hash = :hash")
            .execute(arguments: ["hash": hash])
    }

    /// Chains the events that an earlier version wrote.
    func adopt() throws {
        for event in try Int64.fetchAll(db, sql: "SELECT id FROM event ORDER BY id") { try append(event) }
    }

    /// Returns every place where the chain is broken.
    func faults() throws -> Verification.Check {
        var faults: [StoreFault] = []
        var last = Data()
        var count = 0
        let rows = try Row.fetchCursor(db, sql: "SELECT id, run_id, kind, hash, \(Self.text) FROM event ORDER BY id")
        while let row = try rows.next() {
            count += 1
            let (event, kind, stored): (Int64, String, Data?) = (row[0], row[2], row[3])
            if stored != Self.hash(after: last, row[4]) {
                faults.append(
                    StoreFault(
                        run: row[1], "event \(event) (\(kind)) was changed, or an earlier event is missing"))
            }
            last = stored ?? Data()
        }
        let head = try Row.fetchOne(db, sql: "SELECT events, hash FROM event_chain")
        let (written, hash): (Int, Data) = (head?[0] ?? 0, head?[1] ?? Data())
        if written != count || hash != last {
            faults.append(
                StoreFault(
                    "\(written) events were written, \(count) exist"
                        + (written == count ? ", and the last event differs" : "")))
        }
        return Verification.Check(EventRecord.name, EventRecord.promise, faults: faults, compared: count)
    }

    private static func hash(after last: Data, _ text: String) -> Data {
        Data(Digest.sha256(Array(last) + Array(text.utf8)))
    }
}
