import GRDB
package import Model
package import Store

/// What the clocks showed, and when somebody set one, in the transaction of `db`: one process writes a step down, and
/// all of them go by it.
struct ClockRecord {
    /// A clock that is steered moves on unnoticed; the record follows it at this distance.
    private static let driftMs: Int64 = 100
    /// More within two windows of any budget means that nothing keeps this clock.
    private static let stepsMax = 200
    private static let readingsKeptMs: Int64 = 30 * 86_400_000

    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// The latest steps, oldest first, for the silent budget and the caps; what was set until now is written down before.
    func latestSteps(_ reading: ClockReading?, by owner: String) throws -> [ClockStep] {
        guard let reading else { return [] }
        try note(reading, by: Actor(owner))
        return try latestSteps()
    }

    /// Those on record.
    func latestSteps() throws -> [ClockStep] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT expected_at, shown_at, id FROM clock_step ORDER BY id DESC LIMIT \(Self.stepsMax)")
        ).reversed().map(Self.step)
    }

    /// True when nothing is to be written down or told.
    func isUpToDate(_ reading: ClockReading) throws -> Bool {
        guard let last = try last(boot: reading.boot) else { return reading.boot.isEmpty }
        let isTold = try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM clock_step WHERE is_told = 0)")
        return abs(drift(from: last, to: reading)) < Self.driftMs && isTold == true
    }

    func note(_ reading: ClockReading, by actor: Actor) throws {
        guard !reading.boot.isEmpty else { return }
        if let last = try last(boot: reading.boot) {
            guard abs(drift(from: last, to: reading)) >= Self.driftMs else { return }
            if let step = ClockStep(from: last, to: reading) { try record(step, by: actor) }
        } else {
            try db.execute(
                sql: "DELETE FROM clock_reading WHERE wall_at < :now - :kept",
                arguments: ["now": reading.wall.milliseconds, "kept": Self.readingsKeptMs])
        }
        try db.execute(
            sql: "REPLACE INTO clock_reading (boot, wall_at, uptime) VALUES (:boot, :wall, :uptime)",
            arguments: [
                "boot": reading.boot, "wall": reading.wall.milliseconds, "uptime": reading.uptime.wholeMilliseconds,
            ])
    }

    /// The first step that nobody was told of, which counts as told from now on.
    func takeUntold() throws -> ClockStep? {
        let row = try Row.fetchOne(
            db, sql: "SELECT expected_at, shown_at, id FROM clock_step WHERE is_told = 0 ORDER BY id LIMIT 1")
        guard let row else { return nil }
        try db.execute(sql: "UPDATE clock_step SET is_told = 1 WHERE id = :id", arguments: ["id": row[2] as Int64])
        return Self.step(row)
    }

    func steps(since moment: Timestamp) throws -> [ClockStep] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT expected_at, shown_at FROM clock_step WHERE max(expected_at, shown_at) >= :since ORDER BY id
                    """),
            arguments: ["since": moment.milliseconds]
        ).map(Self.step)
    }

    private func last(boot: String) throws -> ClockReading? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT wall_at, uptime FROM clock_reading WHERE boot = :boot"),
            arguments: ["boot": boot]
        ).map {
            ClockReading(wall: Timestamp(milliseconds: $0[0]), uptime: .milliseconds($0[1] as Int64), boot: boot)
        }
    }

    private func drift(from last: ClockReading, to reading: ClockReading) -> Int64 {
        ((reading.wall - last.wall) - (reading.uptime - last.uptime)).wholeMilliseconds
    }

    private func record(_ step: ClockStep, by actor: Actor) throws {
        try db.execute(
            sql: "INSERT INTO clock_step (expected_at, shown_at) VALUES (:expected, :shown)",
            arguments: ["expected": step.before.milliseconds, "shown": step.at.milliseconds])
        try EventLog.record(
            db, kind: .clockStepped, run: nil, actor: actor, detail: step.description, now: step.at)
        try shiftRetries(step)
    }

    /// A delivery that waits for its next attempt, and a webhook's message, wait as long as before. What had come due by a
    /// clock that is set back stays due: in the meantime an endpoint may have taken nothing. Waves and quiet hours go by
    /// the wall clock, the silent budget and the caps by ``RollingWindow``.
    private func shiftRetries(_ step: ClockStep) throws {
        let arguments: StatementArguments = [
            "by": step.by.wholeMilliseconds, "expected": step.before.milliseconds, "shown": step.at.milliseconds,
        ]
        try db.execute(
            sql: """
                UPDATE delivery SET not_before = not_before + :by
                WHERE run_id IN (SELECT id FROM run WHERE state IN (\(SQLConstants.list([.running, .paused] as [RunState]))))
                    AND state = \(DeliveryState.pending.rawValue)
                    AND (not_before > :expected OR not_before > :shown AND changed_at > :shown)
                    AND not_before < \(NotBefore.heldFrom) AND changed_at <= :expected
                    AND (reason NOT IN (\(SQLConstants.list(Self.held)))
                        OR reason IS NULL AND wave IS NULL AND not_before <= :expected)
                """, arguments: arguments)
        // Set forward they would only come sooner.
        guard step.by < .zero else { return }
        try db.execute(
            sql: "UPDATE webhook_message SET next_at = next_at + :by WHERE next_at > :shown",
            arguments: ["by": step.by.wholeMilliseconds, "shown": step.at.milliseconds])
    }

    private static let held = [SuppressionReason.quietHours, .silentBudget, .frequencyCap].map(\.rawValue)

    private static func step(_ row: Row) -> ClockStep {
        let expected = Timestamp(milliseconds: row[0])
        return ClockStep(before: expected, by: Timestamp(milliseconds: row[1]) - expected)
    }
}

extension SQLiteFileStore {
    package func noteClocks(_ reading: ClockReading, by actor: Actor) async throws -> ClockStep? {
        // Every sender asks every minute, and mostly nothing has happened.
        guard try await !read(.short, { db in try ClockRecord(db).isUpToDate(reading) }) else { return nil }
        return try await write { db in
            let record = ClockRecord(db)
            try record.note(reading, by: actor)
            return try record.takeUntold()
        }
    }

    package func clockSteps(since moment: Timestamp) async throws -> [ClockStep] {
        try await read(.short) { db in try ClockRecord(db).steps(since: moment) }
    }
}
