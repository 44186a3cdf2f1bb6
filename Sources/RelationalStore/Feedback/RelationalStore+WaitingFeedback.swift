import Model
package import Store

extension RelationalStore {
    package func setFeedbackAside(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict] {
        let verdicts = try await snapshot(.short) { db in
            let sources = try db.feedbackSources(events, withPushes: false)
            let unknown = try db.unknownDevices(among: events.compactMap { sources.device(of: $0.source) })
            var rows = FeedbackRows(events, sources)
            rows.markAll()
            rows.markUnknown(unknown, events, sources)
            return rows.verdicts
        }
        let kept = zip(events, verdicts).filter { $0.1 == .recorded }.map(\.0)
        guard let first = kept.first else { return verdicts }
        let packed = FeedbackPacking.pack(kept)
        try await transaction(.durable) { db in
            _ = try db.execute(
                "INSERT INTO waiting_feedback (received_at, events, packed) VALUES ($1, $2, $3)", first.receivedAt,
                kept.count, packed)
        }
        return verdicts
    }

    package func waitingFeedback() async throws -> WaitingFeedback? {
        try await snapshot(.short) { db in
            try db.first("SELECT CAST(sum(events) AS bigint), min(received_at) FROM waiting_feedback") { row in
                try row.timestampOrNil(1).map { WaitingFeedback(events: try row.int(0), since: $0) }
            } ?? nil
        }
    }

    package func recordWaitingFeedback() async throws {
        var last: Int64 = 0
        var unreadable: Int64?
        while true {
            let after = last
            let rows = try await snapshot(.short) { try $0.waitingFeedback(after: after) }
            guard let end = rows.map(\.id).max() else { break }
            last = end
            var events: [FeedbackEvent] = []
            var read: [Int64] = []
            for row in rows {
                // One row that cannot be read does not stop the others.
                guard let found = FeedbackPacking.unpack(row.packed) else {
                    unreadable = row.id
                    continue
                }
                events += found
                read.append(row.id)
            }
            try await record(events)
            // The rows go last: what a crash has recorded by then is not recorded again.
            let ids = read
            try await transaction(.quick) { db in
                _ = try db.execute("DELETE FROM waiting_feedback WHERE id \(Session.dialect.isAny(1))", ids)
            }
            try Task.checkCancellation()
        }
        guard let unreadable else { return }
        throw StoreError.corrupt(
            path: path, reason: "the reports in row \(unreadable) of waiting_feedback cannot be read")
    }

    /// Records events in the order of the table, so that a transaction changes few pages.
    private func record(_ events: [FeedbackEvent]) async throws {
        let events = events.sorted { $0.device < $1.device }
        var start = 0
        while start < events.count {
            let end = min(start + WaitingFeedbackLimits.eventsAtOnce, events.count)
            _ = try await recordFeedback(Array(events[start..<end]), .quick)
            start = end
        }
    }
}

/// How many waiting events are recorded at once.
private enum WaitingFeedbackLimits {
    /// The number of rows that are looked at, and of their events that are read into memory. The more events, the fewer
    /// pages each of them changes.
    static let rows = 1_000
    static let events = 250_000
    /// The number of events in a transaction. It is small, so that a run that is sent does not wait long.
    static let eventsAtOnce = 1_000
}

extension SQLSession {
    /// Returns the first rows of waiting events after a row, at least one if there is one.
    fileprivate func waitingFeedback(after last: Int64) throws -> [(id: Int64, packed: [UInt8])] {
        let rows = try all(
            "SELECT id, events FROM waiting_feedback WHERE id > $1 ORDER BY id LIMIT \(WaitingFeedbackLimits.rows)",
            last
        ) { (id: try $0.int64(0), events: try $0.int(1)) }
        var events = 0
        let ids = rows.prefix { row in
            defer { events += row.events }
            return events < WaitingFeedbackLimits.events
        }.map(\.id)
        return try all("SELECT id, packed FROM waiting_feedback WHERE id \(Self.dialect.isAny(1))", ids) {
            (id: try $0.int64(0), packed: try $0.bytes(1))
        }
    }
}

extension FeedbackEvent {
    /// The device of a push. 0 for an installation, whose device only the store knows.
    fileprivate var device: Int64 { if case .push(_, let device) = source { device } else { 0 } }
}
