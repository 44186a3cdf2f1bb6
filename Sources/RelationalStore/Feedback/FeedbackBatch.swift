import Model
import Store

/// Records a batch of events within a transaction that holds the lock of the table.
struct FeedbackBatch<Session: SQLSession> {
    private let db: Session

    init(_ db: Session) { self.db = db }

    /// Returns an index that is stored as a number, -1 for none.
    static func index(_ number: Int) -> Int? { number < 0 ? nil : number }

    func record(_ events: [FeedbackEvent]) throws -> [FeedbackVerdict] {
        var rows = FeedbackRows(events, try devices(of: events), runs: try runs(of: events))
        try insert(&rows, events)
        for (run, places) in rows.written() {
            rows.count(places, events, try pushes(of: run, to: places.map { rows.keys[$0].device }))
        }
        try write(rows.cells)
        return rows.verdicts
    }

    private func devices(of events: [FeedbackEvent]) throws -> FeedbackDevices {
        var (named, installations) = FeedbackDevices.named(by: events)
        var devices = FeedbackDevices()
        named.sort()
        devices.known = Set(
            try db.all(
                """
                SELECT id FROM device WHERE id \(Session.dialect.isAny(1)) AND \(Session.dialect.isNotRemoved)
                """, named
            ) { try $0.int64(0) })
        for (topic, ids) in installations {
            let rows = try db.all(
                """
                SELECT device.installation_id, device.id FROM device
                WHERE device.topic_id = (SELECT id FROM topic WHERE name = $1)
                    AND device.installation_id \(Session.dialect.isAny(2))
                """, topic, ids.filter(Session.dialect.canHold).sorted()
            ) { (try $0.text(0), try $0.int64(1)) }
            devices.installations[topic] = Dictionary(rows) { first, _ in first }
        }
        return devices
    }

    private func runs(of events: [FeedbackEvent]) throws -> Set<Int64> {
        let named = Set(events.compactMap { if case .push(let run, _) = $0.source { run } else { nil } })
        guard !named.isEmpty else { return [] }
        return Set(
            try db.all("SELECT id FROM run WHERE id \(Session.dialect.isAny(1))", named.sorted()) {
                try $0.int64(0)
            })
    }

    /// Inserts the rows that are not there yet, and marks them.
    private func insert(_ rows: inout FeedbackRows, _ events: [FeedbackEvent]) throws {
        guard !rows.keys.isEmpty else { return }
        let into = """
            INSERT INTO feedback_event (
                device_id, run_id, kind, name, id_high, id_low, value_micros, happened_at, received_at)
            """
        // SQLite keeps the statement prepared. On PostgreSQL each row would be a round trip.
        if case .sqlite = Session.dialect {
            let statement: SQLStatement = "\(into) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING"
            for place in rows.keys.indices {
                let (key, event) = (rows.keys[place], events[rows.events[place]])
                let values: [any SQLValue] = [
                    key.device, key.run, key.kind, key.name, key.idHigh, key.idLow, event.valueMicros, event.at,
                    event.receivedAt,
                ]
                if try db.execute(statement, values: values) > 0 { rows.mark(place) }
            }
            return
        }
        let columns = Self.types.enumerated().map { "(value ->> \($0))::\($1)" }
        let written = try db.all(
            """
            \(into) SELECT \(columns.joined(separator: ", ")) FROM jsonb_array_elements($1::jsonb) AS given (value)
            ON CONFLICT DO NOTHING RETURNING device_id, run_id, kind, name, id_high, id_low
            """, rows.json(events)
        ) { row in
            FeedbackKey(
                device: try row.int64(0), run: try row.int64(1), kind: try row.int64(2), name: try row.text(3),
                idHigh: try row.int64(4), idLow: try row.int64(5))
        }
        rows.mark(Set(written))
    }

    private static var types: [String] {
        ["bigint", "bigint", "smallint", "text", "bigint", "bigint", "bigint", "bigint", "bigint"]
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

    /// Returns the deliveries of a run to devices. Empty if the run's outcomes by device were pruned.
    private func pushes(of run: Int64, to devices: [Int64]) throws -> [Int64: FeedbackRows.Push] {
        guard try db.hasDeliveries(of: run) else { return [:] }
        let rows = try db.all(
            .once(
                """
                SELECT device_id, variant, locale_index, state, changed_at FROM \(Session.dialect.deliveries(of: run))
                WHERE \(Session.dialect.isOf(run: run)) AND device_id \(Session.dialect.isAny(1))
                """), values: [devices]
        ) { row in
            let isSettled = DeliveryState(code: try row.int64(3)) != .pending
            return (
                try row.int64(0),
                FeedbackRows.Push(
                    variant: try row.intOrNil(1), locale: try row.intOrNil(2),
                    sentAt: isSettled ? try row.timestamp(4) : nil)
            )
        }
        return Dictionary(rows) { first, _ in first }
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
