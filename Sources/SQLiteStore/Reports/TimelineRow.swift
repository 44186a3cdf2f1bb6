import Foundation
import GRDB
import Model
package import Store

/// The slot of a run's timeline that a change of its account falls into.
struct TimelineRow {
    /// A row of a few hundred bytes for each transaction that settles something.
    static func add(
        _ change: DeliveryCounts, _ attempts: SettledAttempts, to run: Int64, at now: Timestamp, _ db: Database
    ) throws {
        guard attempts.isAnything || change.ends else { return }
        let slot = Timeline.slot(of: now)
        var latencies = attempts.latencies
        if !latencies.isEmpty { latencies.add(try stored(run, slot, db)) }
        let upsert = try RowStatement(db, attempts.latencies.isEmpty ? upsertSQL : upsertLatenciesSQL)
        try upsert.bind(run, upsert.parameter(":run"))
        try upsert.bind(slot, upsert.parameter(":slot"))
        try upsert.bind(Int64(change.accepted), upsert.parameter(":accepted"))
        try upsert.bind(Int64(max(0, change.rejected)), upsert.parameter(":rejected"))
        try upsert.bind(Int64(change.unknown), upsert.parameter(":unknown"))
        try upsert.bind(Int64(change.suppressed), upsert.parameter(":suppressed"))
        try upsert.bind(Int64(attempts.retried), upsert.parameter(":retried"))
        try upsert.bind(Int64(max(0, -change.rejected)), upsert.parameter(":reopened"))
        try upsert.bind(latencies.packed, upsert.parameter(":latencies"))
        try upsert.run()
    }

    private static let upsertSQL = """
        INSERT INTO timeline (
            run_id, slot, accepted, rejected, unknown, suppressed, retried, reopened, latencies
        ) VALUES (:run, :slot, :accepted, :rejected, :unknown, :suppressed, :retried, :reopened, :latencies)
        ON CONFLICT (run_id, slot) DO UPDATE SET
            accepted = accepted + excluded.accepted, rejected = rejected + excluded.rejected,
            unknown = unknown + excluded.unknown, suppressed = suppressed + excluded.suppressed,
            retried = retried + excluded.retried, reopened = reopened + excluded.reopened
        """
    private static let upsertLatenciesSQL = upsertSQL + ", latencies = excluded.latencies"

    private static func stored(_ run: Int64, _ slot: Int64, _ db: Database) throws -> LatencyHistogram {
        let rows = try RowStatement(db, "SELECT latencies FROM timeline WHERE run_id = :run AND slot = :slot")
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(slot, rows.parameter(":slot"))
        return try rows.step() ? LatencyHistogram(packed: rows.bytes(0)) : LatencyHistogram()
    }

    static func timeline(of run: Int64, _ db: Database) throws -> Timeline {
        let rows = try RowStatement(
            db,
            """
            SELECT slot, accepted, rejected, unknown, suppressed, retried, reopened, latencies
            FROM timeline WHERE run_id = :run ORDER BY slot
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        var slots: [Timeline.Slot] = []
        while try rows.step() {
            var slot = Timeline.Slot(startsAt: Timeline.start(ofSlot: rows.int64(0)))
            slot.accepted = rows.int(1)
            slot.rejected = rows.int(2)
            slot.unknown = rows.int(3)
            slot.suppressed = rows.int(4)
            slot.retried = rows.int(5)
            slot.reopened = rows.int(6)
            slot.latencies = LatencyHistogram(packed: rows.bytes(7))
            slots.append(slot)
        }
        let isWhole = try Bool.fetchOne(
            db, sql: "SELECT has_timeline FROM run WHERE id = :run", arguments: ["run": run])
        guard let isWhole else { throw StoreError.noSuchRun(run) }
        return Timeline(slots: slots, isWhole: isWhole)
    }
}

extension SQLiteFileStore {
    package func timeline(_ run: Int64) async throws -> Timeline {
        try await read { db in try TimelineRow.timeline(of: run, db) }
    }
}
