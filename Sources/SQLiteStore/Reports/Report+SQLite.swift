import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func summary(run: Int64) async throws -> DeliveryCounts {
        try await read(.short) { db in try RunRow.require(db, run).counts }
    }

    package func report(_ run: Int64) async throws -> Report {
        try await read { db in
            let row = try RunRow.require(db, run)
            return try Self.report(
                of: row, OutcomeSummary(db, run).tally() ?? DeliveryTally(db, run: run), db)
        }
    }

    package func keptReport(_ run: Int64) async throws -> Report? {
        try await read(.short) { db in
            let row = try RunRow.require(db, run)
            return try OutcomeSummary(db, run).tally().map { try Self.report(of: row, $0, db) }
        }
    }

    private static func report(of row: Run, _ tally: DeliveryTally, _ db: Database) throws -> Report {
        let devices = try Row.fetchOne(
            db, sql: "SELECT devices_gone, devices_suspended FROM run WHERE id = :run", arguments: ["run": row.id])
        return Report(
            run: row, tally, devicesGone: devices?[0] ?? 0, devicesSuspended: devices?[1] ?? 0)
    }

    package func check(_ run: Int64) async throws -> SumCheck {
        try await read { db in
            let stored = try RunRow.require(db, run).counts
            let summary = OutcomeSummary(db, run)
            let kept = try summary.tally()
            let prunedAt = try summary.prunedAt()
            let rows = try prunedAt == nil ? DeliveryTally(db, run: run) : kept
            let recounted = rows?.total ?? DeliveryCounts()
            var problems = try RunAudit(db, run).problems(stored: stored, recounted: recounted)
            if let kept, let rows, !kept.agrees(with: rows) {
                problems.append("the summary of its outcomes is not what the rows say")
            }
            return SumCheck(stored: stored, recounted: recounted, problems: problems, prunedAt: prunedAt)
        }
    }
}

/// Looks for what must never be in the rows of a run.
struct RunAudit {
    private let db: Database
    private let run: Int64

    init(_ db: Database, _ run: Int64) {
        self.db = db
        self.run = run
    }

    func problems(stored: DeliveryCounts, recounted: DeliveryCounts) throws -> [String] {
        var problems = SumCheck.problems(stored: stored, recounted: recounted)
        let open = try count("SELECT coalesce(sum(open), 0) FROM lease WHERE run_id = :run")
        if open != stored.leased {
            problems.append("leases wait for \(open.counted("outcome")), the account for \(stored.leased)")
        }
        let stranded = try count(
            """
            SELECT count(*) FROM delivery
            WHERE run_id = :run AND state = \(DeliveryState.pending.rawValue) AND not_before = \(NotBefore.inFlight)
            """)
        if stranded > open { problems.append("\(stranded) deliveries are marked in flight, \(open) are") }
        problems += try TimelineRow.timeline(of: run, db).problems(besides: stored)
        if try !isDefinitionWhole() { problems.append("the definition was changed after the run was made") }
        return problems
    }

    private func count(_ sql: String) throws -> Int {
        try Int.fetchOne(db, sql: sql, arguments: ["run": run]) ?? 0
    }

    private func isDefinitionWhole() throws -> Bool {
        let row = try Row.fetchOne(
            db, sql: "SELECT definition, definition_hash FROM run WHERE id = :run", arguments: ["run": run])
        guard let row else { return false }
        return RunDefinitionText(json: row[0]).hash == row[1]
    }
}
