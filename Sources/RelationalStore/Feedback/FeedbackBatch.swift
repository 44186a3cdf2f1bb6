import Model
import Store

/// Records a batch of events within a transaction that holds the lock of the table.
struct FeedbackBatch<Session: SQLSession> {
    private let db: Session

    init(_ db: Session) { self.db = db }

    /// Returns an index or a minute that is stored as a number, -1 for none.
    static func stored(_ number: Int) -> Int? { number < 0 ? nil : number }

    func record(
        _ events: [FeedbackEvent], _ sources: FeedbackSources, as rows: FeedbackRows
    ) throws -> [FeedbackVerdict] {
        var rows = rows
        try rows.name(events) { run, kind in try FeedbackNames(db, run: run, kind: kind) }
        try insert(&rows, events)
        rows.markUnknown(try db.unknownDevices(among: rows.unwrittenDevices), events, sources)
        for (run, places) in rows.written() { rows.count(places, events, sources.runs[run] ?? .pruned) }
        try write(rows.cells)
        return rows.verdicts
    }

    /// Inserts the rows that are not there yet, and marks them.
    private func insert(_ rows: inout FeedbackRows, _ events: [FeedbackEvent]) throws {
        guard !rows.keys.isEmpty else { return }
        let values = rows.keys.indices.map { place -> [any SQLValue] in
            let (key, event) = (rows.keys[place], events[rows.events[place]])
            return [
                key.device, key.run, key.kind, key.name, key.idHigh, key.idLow, event.valueMicros, event.at,
                event.receivedAt,
            ]
        }
        let written = try db.execute(
            """
            INSERT INTO feedback_event (
                device_id, run_id, kind, name, id_high, id_low, value_micros, happened_at, received_at)
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 FROM device
            WHERE device.id = $1 AND \(Session.dialect.isNotRemoved) ON CONFLICT DO NOTHING
            """, each: values)
        for (place, count) in written.enumerated() where count > 0 { rows.mark(place) }
    }

    /// Adds the new events of pushes to the counts of their runs.
    private func write(_ cells: [FeedbackRows.Cell: FeedbackRows.Sum]) throws {
        try db.execute(
            """
            INSERT INTO feedback_count (run_id, kind, name, variant, locale_index, minute, events, value_micros)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (run_id, kind, name, variant, locale_index, minute) DO UPDATE SET
                events = feedback_count.events + excluded.events,
                value_micros = \(Session.dialect.sumOfValues("feedback_count.value_micros", "excluded.value_micros"))
            """,
            each: cells.map { cell, sum in
                [
                    cell.run, cell.kind, cell.name, cell.variant, cell.locale, cell.minute, sum.events, sum.valueMicros,
                ] as [any SQLValue]
            })
    }
}

extension SQLSession {
    /// Copies the events of a device that is about to be deleted.
    package func inheritFeedback(of gone: Int64, by kept: Int64) throws {
        try execute(
            """
            INSERT INTO feedback_event (
                device_id, run_id, kind, name, id_high, id_low, value_micros, happened_at, received_at)
            SELECT $2, run_id, kind, name, id_high, id_low, value_micros, happened_at, received_at
            FROM feedback_event WHERE device_id = $1 ON CONFLICT DO NOTHING
            """, gone, kept)
        try execute(
            """
            INSERT INTO waiting_merge (gone, kept) SELECT $1, $2 WHERE EXISTS (SELECT 1 FROM waiting_feedback)
            ON CONFLICT (gone) DO UPDATE SET kept = excluded.kept
            """, gone, kept)
    }
}

extension SQLDialect {
    /// The condition that no person removed a device. Its reports were deleted, and no new ones are about it.
    var isNotRemoved: String {
        "(device.status_reason IS NULL OR device.status_reason <> '\(StoredDevice.removedReason)')"
    }

    /// Returns an expression for the sum of a column of values, 0 for no rows.
    func sumOfValues(_ column: String) -> String { limited(word("total(\(column))", "coalesce(sum(\(column)), 0)")) }

    /// Returns an expression for the sum of two values.
    fileprivate func sumOfValues(_ first: String, _ second: String) -> String {
        limited(word("\(first) + \(second)", "CAST(\(first) AS numeric) + \(second)"))
    }

    /// The largest sum of values, in millionths. Sums stop there, so that no report of an app makes a run unreadable.
    private static var valueMax: Int64 { 9_000_000_000_000_000_000 }

    private func limited(_ sum: String) -> String {
        let most = Self.valueMax
        return word(
            "CAST(max(-\(most), min(\(most), \(sum))) AS INTEGER)",
            "CAST(greatest(-\(most), least(\(most), \(sum))) AS bigint)")
    }
}
