import Model
package import Store

/// The timeline slot to which a change of a run's counts belongs.
package enum TimelineRow {
    /// Adds a change to its slot. This writes a few hundred bytes for each transaction that settles deliveries. The
    /// lock on the run's row also covers its timeline; see ``RunRow/add(_:_:to:at:_:)``.
    static func add(
        _ change: DeliveryCounts, _ attempts: SettledAttempts, replacing replaced: ReplacedDeliveries, to run: Int64,
        at now: Timestamp, _ db: some SQLSession
    ) throws {
        var change = change
        change.suppressed += try takeBack(replaced, of: run, db)
        guard attempts.isAnything || change.ends else { return }
        let slot = Timeline.slot(of: now)
        var latencies = attempts.latencies
        if !latencies.isEmpty { latencies.add(try stored(run, slot, db)) }
        try db.execute(
            """
            INSERT INTO timeline (
                run_id, slot, accepted, rejected, unknown, suppressed, retried, reopened, latencies
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (run_id, slot) DO UPDATE SET
                accepted = timeline.accepted + excluded.accepted, rejected = timeline.rejected + excluded.rejected,
                unknown = timeline.unknown + excluded.unknown,
                suppressed = timeline.suppressed + excluded.suppressed,
                retried = timeline.retried + excluded.retried, reopened = timeline.reopened + excluded.reopened,
                latencies = CASE WHEN length(excluded.latencies) > 0 THEN excluded.latencies ELSE timeline.latencies END
            """, run, slot, change.accepted, max(0, change.rejected), change.unknown, change.suppressed,
            attempts.retried, max(0, -change.rejected), latencies.packed)
    }

    /// Subtracts deliveries that are no longer suppressed from the slots that counted them. Returns their number,
    /// without those whose slot the timeline lacks.
    private static func takeBack(_ replaced: ReplacedDeliveries, of run: Int64, _ db: some SQLSession) throws -> Int {
        var taken = 0
        let slots = Dictionary(grouping: replaced.suppressedAt, by: Timeline.slot(of:))
        for (slot, moments) in slots.sorted(by: { $0.key < $1.key }) {
            let found = try db.execute(
                "UPDATE timeline SET suppressed = suppressed - $3 WHERE run_id = $1 AND slot = $2 AND suppressed >= $3",
                run, slot, moments.count)
            taken += found * moments.count
        }
        return taken
    }

    private static func stored(_ run: Int64, _ slot: Int64, _ db: some SQLSession) throws -> LatencyHistogram {
        try db.first("SELECT latencies FROM timeline WHERE run_id = $1 AND slot = $2", run, slot) { row in
            LatencyHistogram(packed: try row.bytes(0))
        } ?? LatencyHistogram()
    }

    package static func timeline(of run: Int64, _ db: some SQLSession) throws -> Timeline {
        let slots = try db.all(
            """
            SELECT slot, accepted, rejected, unknown, suppressed, retried, reopened, latencies
            FROM timeline WHERE run_id = $1 ORDER BY slot
            """, run
        ) { row in
            var slot = Timeline.Slot(startsAt: Timeline.start(ofSlot: try row.int64(0)))
            slot.accepted = try row.int(1)
            slot.rejected = try row.int(2)
            slot.unknown = try row.int(3)
            slot.suppressed = try row.int(4)
            slot.retried = try row.int(5)
            slot.reopened = try row.int(6)
            slot.latencies = LatencyHistogram(packed: try row.bytes(7))
            return slot
        }
        let isWhole = try db.first("SELECT has_timeline FROM run WHERE id = $1", run) { try $0.bool(0) }
        guard let isWhole else { throw StoreError.noSuchRun(run) }
        return Timeline(slots: slots, isWhole: isWhole)
    }
}

extension RelationalStore {
    package func timeline(_ run: Int64) async throws -> Timeline {
        try await snapshot(.expensive) { db in try TimelineRow.timeline(of: run, db) }
    }
}
