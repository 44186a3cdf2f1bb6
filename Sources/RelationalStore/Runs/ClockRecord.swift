package import Model
package import Store

/// The readings and the steps of the clocks, in the transaction of `db`. One process records a step, and all
/// processes use the record. It is used only if the store's times come from the callers' clocks.
package struct ClockRecord<Session: SQLSession> {
    /// The drift, in milliseconds, at which the stored reading is renewed. A slewed clock drifts without a step.
    private static var driftMs: Int64 { 100 }
    /// The maximum number of steps read. A clock with more steps within two windows of a budget is not kept by NTP.
    private static var stepsMax: Int { 200 }
    private static var readingsKeptMs: Int64 { 30 * 86_400_000 }

    private let db: Session

    package init(_ db: Session) {
        self.db = db
    }

    /// Returns the latest steps, oldest first, for the silent budget and the caps. Records all steps up to now first.
    package func latestSteps(_ reading: ClockReading?, by owner: String) throws -> [ClockStep] {
        guard let reading, db.goesByCallersClock else { return [] }
        try note(reading, by: Actor(owner))
        return try latestSteps()
    }

    /// Returns the recorded steps.
    package func latestSteps() throws -> [ClockStep] {
        guard db.goesByCallersClock else { return [] }
        return try db.all(
            "SELECT expected_at, shown_at FROM clock_step ORDER BY id DESC LIMIT \(Self.stepsMax)", read: Self.step
        ).reversed()
    }

    /// Returns whether there is nothing to record or to report.
    func isUpToDate(_ reading: ClockReading) throws -> Bool {
        guard let last = try last(boot: reading.boot, isLocked: false) else { return reading.boot.isEmpty }
        let isTold = try db.first("SELECT NOT EXISTS (SELECT 1 FROM clock_step WHERE NOT is_told)") { try $0.bool(0) }
        return abs(drift(from: last, to: reading)) < Self.driftMs && isTold == true
    }

    func note(_ reading: ClockReading, by actor: Actor) throws {
        guard !reading.boot.isEmpty else { return }
        if let last = try last(boot: reading.boot, isLocked: false) {
            guard abs(drift(from: last, to: reading)) >= Self.driftMs else { return }
            // If two senders see the same clock step, the first records it. The second reads again under the lock.
            guard let last = try self.last(boot: reading.boot, isLocked: true),
                abs(drift(from: last, to: reading)) >= Self.driftMs
            else { return }
            if let step = ClockStep(from: last, to: reading) { try record(step, reading, by: actor) }
        } else {
            try db.execute(
                "DELETE FROM clock_reading WHERE wall_at < $1", reading.wall.milliseconds - Self.readingsKeptMs)
        }
        try db.execute(
            """
            INSERT INTO clock_reading (boot, wall_at, uptime) VALUES ($1, $2, $3)
            ON CONFLICT (boot) DO UPDATE SET wall_at = excluded.wall_at, uptime = excluded.uptime
            """, reading.boot, reading.wall, reading.uptime.wholeMilliseconds)
    }

    /// Returns the first unreported step and marks it as reported.
    func takeUntold() throws -> ClockStep? {
        let found = try db.first(
            "SELECT expected_at, shown_at, id FROM clock_step WHERE NOT is_told ORDER BY id LIMIT 1\(Session.dialect.lock)"
        ) { (step: try Self.step($0), id: try $0.int64(2)) }
        guard let found else { return nil }
        try db.execute("UPDATE clock_step SET is_told = true WHERE id = $1", found.id)
        return found.step
    }

    func steps(since moment: Timestamp) throws -> [ClockStep] {
        try db.all(
            "SELECT expected_at, shown_at FROM clock_step WHERE \(Session.dialect.greatest)(expected_at, shown_at) >= $1 ORDER BY id",
            moment, read: Self.step)
    }

    private func last(boot: String, isLocked: Bool) throws -> ClockReading? {
        try db.first(
            "SELECT wall_at, uptime FROM clock_reading WHERE boot = $1\(isLocked ? Session.dialect.lock : "")", boot
        ) { ClockReading(wall: try $0.timestamp(0), uptime: .milliseconds(try $0.int64(1)), boot: boot) }
    }

    private func drift(from last: ClockReading, to reading: ClockReading) -> Int64 {
        ((reading.wall - last.wall) - (reading.uptime - last.uptime)).wholeMilliseconds
    }

    private func record(_ step: ClockStep, _ reading: ClockReading, by actor: Actor) throws {
        try db.execute("INSERT INTO clock_step (expected_at, shown_at) VALUES ($1, $2)", step.before, step.at)
        try db.record(.clockStepped, by: actor, step.description, now: step.at)
        try shiftRetries(step)
        try shiftHolds(step, start: step.before - reading.uptime, by: actor)
    }

    /// Moves the holds of stages, so that each lasts as long as before the step.
    private func shiftHolds(_ step: ClockStep, start: Timestamp, by actor: Actor) throws {
        let runs = try db.all(
            """
            SELECT DISTINCT run.id FROM run JOIN run_stage ON run_stage.run_id = run.id
            WHERE run.state IN (\(SQLConstants.list([.running, .paused] as [RunState]))) AND run_stage.decision IS NOT NULL
            ORDER BY run.id
            """
        ) { try $0.int64(0) }
        for run in runs {
            try RunStages.lock(db, run: run)
            let records = try RunStages.records(db, run: run)
            guard let record = StageController.shifted(records, by: step, start: start) else { continue }
            try RunStages(db, try RunRow.require(db, run), actor: actor).write(record)
        }
    }

    /// Shifts waiting times by a clock step. A delivery that waits for its next attempt waits as long as before, and so
    /// does a webhook message if the clock is set back. A delivery that was due before the clock was set back stays
    /// due, because its endpoint may have been on hold.
    ///
    /// Waves and quiet hours use the wall clock. The silent budget and the caps use ``RollingWindow``.
    private func shiftRetries(_ step: ClockStep) throws {
        let by = step.by.wholeMilliseconds
        let runs = try db.all(
            "SELECT id FROM run WHERE state IN (\(SQLConstants.list([.running, .paused] as [RunState]))) ORDER BY id"
        ) { try $0.int64(0) }
        for run in runs {
            try db.execute(
                """
                UPDATE \(Session.dialect.deliveries(of: run)) SET not_before = not_before + $1
                WHERE \(Session.dialect.isOf(parameter: 4)) AND state = \(DeliveryState.pending.code)
                    AND (not_before > $2 OR not_before > $3 AND changed_at > $3)
                    AND not_before < \(NotBefore.heldFrom) AND changed_at <= $2
                    AND (reason NOT IN (\(SQLConstants.list(Self.held)))
                        OR reason IS NULL AND wave IS NULL AND not_before <= $2)
                """, by, step.before, step.at, run)
        }
        // If the clock is set forward, webhook messages only come sooner.
        guard step.by < .zero else { return }
        try db.execute("UPDATE webhook_message SET next_at = next_at + $1 WHERE next_at > $2", by, step.at)
    }

    private static var held: [String] { [SuppressionReason.quietHours, .silentBudget, .frequencyCap].map(\.rawValue) }

    private static func step(_ row: Session.Fields) throws -> ClockStep {
        let expected = try row.timestamp(0)
        return ClockStep(before: expected, by: try row.timestamp(1) - expected)
    }
}

extension RelationalStore {
    package func noteClocks(_ reading: ClockReading, by actor: Actor) async throws -> ClockStep? {
        guard goesByCallersClock else { return nil }
        // Every sender checks every minute, and usually nothing has changed, so read first.
        guard try await !snapshot(.short, { db in try ClockRecord(db).isUpToDate(reading) }) else { return nil }
        return try await transaction(.quick) { db in
            let record = ClockRecord(db)
            try record.note(reading, by: actor)
            return try record.takeUntold()
        }
    }

    package func clockSteps(since moment: Timestamp) async throws -> [ClockStep] {
        try await snapshot(.short) { db in try ClockRecord(db).steps(since: moment) }
    }
}
