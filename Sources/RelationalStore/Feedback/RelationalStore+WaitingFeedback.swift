import Model
package import Store

extension RelationalStore {
    package func setFeedbackAside(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict] {
        let (verdicts, kept) = try await snapshot(.short) { db in
            let sources = try db.feedbackSources(events, withPushes: false)
            let unknown = try db.unknownDevices(among: events.compactMap { sources.device(of: $0.source) })
            var rows = FeedbackRows(events, sources)
            rows.markAllWaiting()
            rows.markUnknown(unknown, events, sources)
            return (rows.verdicts, rows.waiting(events))
        }
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

    @discardableResult
    package func recordWaitingFeedback(tally: @Sendable ([FeedbackTally: Int]) -> Void) async throws -> [Int64] {
        // Reports that come meanwhile wait for the next call, so that this one ends.
        let newest = try await snapshot(.short) { db in
            try db.first("SELECT max(id) FROM waiting_feedback") { try $0.int64OrNil(0) } ?? nil
        }
        guard let newest else { return [] }
        var last: Int64 = 0
        var unreadable: [Int64] = []
        while last < newest {
            let range = last + 1...newest
            let (rows, merges) = try await snapshot(.short) { db in
                (try db.waitingFeedback(in: range), try DeviceMerges(db))
            }
            guard let end = rows.map(\.id).max() else { break }
            last = end
            var events: [FeedbackEvent] = []
            var read: [Int64] = []
            for row in rows {
                guard let found = FeedbackPacking.unpack(row.packed) else {
                    unreadable.append(row.id)
                    continue
                }
                events += found.map { merges.applied(to: $0) }
                read.append(row.id)
            }
            try await record(events, tally)
            // The rows go last: what a crash has recorded by then is not recorded again.
            let ids = read
            try await transaction(.quick) { db in
                _ = try db.execute("DELETE FROM waiting_feedback WHERE id \(Session.dialect.isAny(1))", ids)
            }
            try Task.checkCancellation()
        }
        try await transaction(.quick) { db in
            _ = try db.execute(
                "DELETE FROM waiting_merge WHERE NOT EXISTS (SELECT 1 FROM waiting_feedback)")
        }
        return unreadable
    }

    package func forgetWaitingFeedback(of device: Int64) async throws {
        try await transaction(.durable) { db in
            try db.lock(table: "waiting_feedback")
            let merges = try DeviceMerges(db)
            for id in merges.devices(kept: device) {
                for row in try db.waitingFeedback(holding: id) {
                    guard let events = FeedbackPacking.unpack(row.packed) else { continue }
                    let others = events.filter { merges.applied(to: $0).storedDevice != device }
                    if others.isEmpty {
                        _ = try db.execute("DELETE FROM waiting_feedback WHERE id = $1", row.id)
                    } else if others.count < events.count {
                        _ = try db.execute(
                            "UPDATE waiting_feedback SET events = $2, packed = $3 WHERE id = $1", row.id, others.count,
                            FeedbackPacking.pack(others))
                    }
                }
            }
        }
    }

    /// Records events in the order of the table, so that a transaction changes few pages.
    private func record(_ events: [FeedbackEvent], _ tally: ([FeedbackTally: Int]) -> Void) async throws {
        let events = events.sorted { $0.storedDevice < $1.storedDevice }
        var start = 0
        while start < events.count {
            let end = min(start + WaitingFeedbackLimits.eventsAtOnce, events.count)
            let batch = Array(events[start..<end])
            let verdicts = try await recordFeedback(batch, .quick)
            tally(
                zip(batch, verdicts).reduce(into: [:]) { counts, pair in
                    if let result = FeedbackTally(pair.0.kind, pair.1) { counts[result, default: 0] += 1 }
                })
            start = end
        }
    }
}

/// The devices that were merged into others while events waited.
private struct DeviceMerges: Sendable {
    private let kept: [Int64: Int64]

    init(_ db: some SQLSession) throws {
        let merges = try db.all("SELECT gone, kept FROM waiting_merge") { (try $0.int64(0), try $0.int64(1)) }
        kept = Dictionary(merges) { $1 }
    }

    /// Returns a device, and those that were merged into it.
    func devices(kept device: Int64) -> [Int64] { [device] + kept.keys.filter { $0 != device && last($0) == device } }

    private func last(_ device: Int64) -> Int64 {
        var device = device
        var steps = 0
        while let next = kept[device], steps <= kept.count {
            device = next
            steps += 1
        }
        return device
    }

    /// Returns an event with the device that exists now.
    func applied(to event: FeedbackEvent) -> FeedbackEvent {
        let device = last(event.storedDevice)
        guard device != event.storedDevice else { return event }
        var event = event
        switch event.source {
        case .push(let run, let gone):
            event.source = .push(run: run, device: device)
            event.sentTo = event.sentTo ?? gone
        case .device: event.source = .device(device)
        case .installation: break
        }
        return event
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
    /// Returns the rows of waiting events that may name a device. The store looks for its number, so that few rows are
    /// read.
    fileprivate func waitingFeedback(holding device: Int64) throws -> [(id: Int64, packed: [UInt8])] {
        let holds = Self.dialect.word("instr(packed, $1) > 0", "position(CAST($1 AS bytea) IN packed) > 0")
        return try all(
            "SELECT id, packed FROM waiting_feedback WHERE \(holds) ORDER BY id", FeedbackPacking.bytes(of: device)
        ) { (id: try $0.int64(0), packed: try $0.bytes(1)) }
    }

    /// Returns the first of some rows of waiting events in order, at least one if there is one.
    func waitingFeedback(in range: ClosedRange<Int64>) throws -> [(id: Int64, packed: [UInt8])] {
        let rows = try all(
            """
            SELECT id, events FROM waiting_feedback WHERE id >= $1 AND id <= $2
            ORDER BY id LIMIT \(WaitingFeedbackLimits.rows)
            """, range.lowerBound, range.upperBound
        ) { (id: try $0.int64(0), events: try $0.int(1)) }
        var events = 0
        let ids = rows.prefix { row in
            defer { events += row.events }
            return events < WaitingFeedbackLimits.events
        }.map(\.id)
        return try all(
            "SELECT id, packed FROM waiting_feedback WHERE id \(Self.dialect.isAny(1)) ORDER BY id", ids
        ) {
            (id: try $0.int64(0), packed: try $0.bytes(1))
        }
    }
}

extension FeedbackEvent {
    /// The device. 0 for an installation, whose device only the store knows.
    fileprivate var storedDevice: Int64 {
        switch source {
        case .push(_, let device), .device(let device): device
        case .installation: 0
        }
    }
}
