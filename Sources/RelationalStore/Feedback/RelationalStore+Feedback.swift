package import Model
package import Store

extension RelationalStore {
    package func recordFeedback(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict] {
        try await recordFeedback(events, .durable)
    }

    func recordFeedback(_ events: [FeedbackEvent], _ promise: WritePromise) async throws -> [FeedbackVerdict] {
        guard !events.isEmpty else { return [] }
        let sources = try await snapshot(.short) { try $0.feedbackSources(events) }
        let rows = FeedbackRows(events, sources)
        return try await transaction(promise) { db in
            try db.lock(table: "feedback_event")
            return try FeedbackBatch(db).record(events, sources, as: rows)
        }
    }

    package func feedbackCounts(ofRun run: Int64) async throws -> [FeedbackCell] {
        try await snapshot(.expensive) { try $0.feedbackCells(ofRun: run) }
    }

    package func openTotals(ofRuns runs: [Int64]) async throws -> [Int64: Int] {
        guard !runs.isEmpty else { return [:] }
        return try await snapshot(.expensive) { db in
            let totals = try db.all(
                """
                SELECT run_id, CAST(sum(events) AS bigint) FROM feedback_count
                WHERE run_id \(Session.dialect.isAny(1)) AND kind = $2 AND minute >= 0 GROUP BY run_id
                """, runs, FeedbackKind.opened.rawValue
            ) { (try $0.int64(0), try $0.int(1)) }
            return Dictionary(totals) { first, _ in first }
        }
    }

    package func feedbackArms(
        ofRun id: Int64, _ goals: [FeedbackGoal]
    ) async throws -> [FeedbackGoal: FeedbackArms] {
        try await snapshot(.expensive) { db in
            guard let run = try RunRow.list(db, "WHERE id = $1", id).readable.first, try db.hasDeliveries(of: id) else {
                return [:]
            }
            return try FeedbackArmsCount(run, goals).count(db)
        }
    }

    package func feedback(
        receivedIn range: Range<Timestamp>, batch: @escaping @Sendable ([StoredFeedback]) throws -> Void
    ) async throws {
        try await snapshot(.expensive) { db in
            _ = try db.batches(
                """
                SELECT device_id, run_id, kind, name, value_micros, happened_at, received_at FROM feedback_event
                WHERE received_at >= $1 AND received_at < $2 ORDER BY received_at
                """, values: [range.lowerBound, range.upperBound],
                read: { row -> StoredFeedback? in
                    guard let kind = FeedbackKind(rawValue: try row.int64(2)) else { return nil }
                    let run = try row.int64(1)
                    return StoredFeedback(
                        device: try row.int64(0), run: run == 0 ? nil : run, kind: kind, name: try row.text(3),
                        valueMicros: try row.int64OrNil(4), at: try row.timestamp(5), receivedAt: try row.timestamp(6))
                }, batch: batch)
        }
    }

    package func firstFeedback() async throws -> Timestamp? {
        try await snapshot(.short) { db in
            try db.all("SELECT min(received_at) FROM feedback_event") { try $0.timestampOrNil(0) }.first ?? nil
        }
    }

    package func feedbackRemoval() async throws -> FeedbackRemoval? {
        try await snapshot(.short) { db in
            try db.first("SELECT received_until, received_before, removed_at FROM feedback_removal") { row in
                FeedbackRemoval(
                    receivedUntil: try row.timestamp(0), receivedBefore: try row.timestamp(1),
                    removedAt: try row.timestamp(2))
            }
        }
    }

    package func removeFeedback(receivedBefore moment: Timestamp, now: Timestamp) async throws -> Int {
        var total = 0
        while true {
            let removed = try await transaction(.quick) { db in
                let last =
                    try db.all(
                        """
                        SELECT max(received_at) FROM (
                            SELECT received_at FROM feedback_event WHERE received_at < $1 ORDER BY received_at LIMIT $2
                        ) AS oldest
                        """, moment, FeedbackLimits.removedRows
                    ) { try $0.timestampOrNil(0) }.first ?? nil
                guard let last else { return 0 }
                _ = try db.execute(
                    """
                    INSERT INTO feedback_removal (id, received_until, received_before, removed_at)
                    VALUES (1, $1, $2, $3)
                    ON CONFLICT (id) DO UPDATE SET
                        received_until = CASE WHEN excluded.received_until > feedback_removal.received_until
                            THEN excluded.received_until ELSE feedback_removal.received_until END,
                        received_before = excluded.received_before, removed_at = excluded.removed_at
                    """, last, moment, now)
                return try db.execute("DELETE FROM feedback_event WHERE received_at <= $1", last)
            }
            guard removed > 0 else { return total }
            total += removed
            try Task.checkCancellation()
        }
    }
}

extension SQLSession {
    /// Reads a bounded number of cells, however many names an earlier version has stored.
    fileprivate func feedbackCells(ofRun run: Int64) throws -> [FeedbackCell] {
        let named = FeedbackKind.allCases.filter(\.isNamed)
        let codes = named.map { "\($0.rawValue)" }.joined(separator: ", ")
        var cells = try feedbackCells(where: "run_id = $1 AND kind NOT IN (\(codes))", [run])
        for kind in named {
            let names = try all(
                """
                SELECT name FROM feedback_count WHERE run_id = $1 AND kind = $2 AND name <> '\(FeedbackCell.otherName)'
                GROUP BY name ORDER BY sum(events) DESC, name LIMIT \(FeedbackNames.max)
                """, run, kind.rawValue
            ) { try $0.text(0) }
            let isNamed = "name \(Self.dialect.isAny(3))"
            let values: [any SQLValue] = [run, kind.rawValue, names]
            cells += try feedbackCells(where: "run_id = $1 AND kind = $2 AND \(isNamed)", values)
            cells += try feedbackCells(
                where: "run_id = $1 AND kind = $2 AND NOT (\(isNamed))", values, namedAll: FeedbackCell.otherName)
        }
        return cells.sorted {
            ($0.kind.rawValue, $0.name, $0.variant ?? -1, $0.locale ?? -1, $0.minute ?? -1)
                < ($1.kind.rawValue, $1.name, $1.variant ?? -1, $1.locale ?? -1, $1.minute ?? -1)
        }
    }

    /// - Parameter common: the name under which the cells are added up; `nil` for their own names.
    private func feedbackCells(
        where condition: String, _ values: [any SQLValue], namedAll common: String? = nil
    ) throws -> [FeedbackCell] {
        let (name, names) = common.map { ("'\($0)'", "") } ?? ("name", "name, ")
        var cells: [FeedbackCell] = []
        try each(
            """
            SELECT kind, \(name), variant, locale_index, minute, CAST(sum(events) AS bigint),
                \(Self.dialect.sumOfValues("value_micros"))
            FROM feedback_count WHERE \(condition) GROUP BY kind, \(names)variant, locale_index, minute
            """, values: values
        ) { row in
            guard let kind = FeedbackKind(rawValue: try row.int64(0)) else { return }
            cells.append(
                FeedbackCell(
                    kind: kind, name: try row.text(1), variant: try FeedbackBatch<Self>.stored(row.int(2)),
                    locale: try FeedbackBatch<Self>.stored(row.int(3)),
                    minute: try FeedbackBatch<Self>.stored(row.int(4)),
                    events: try row.int(5), valueMicros: try row.int64(6)))
        }
        return cells
    }
}

private enum FeedbackLimits {
    static let removedRows = 5_000
}
