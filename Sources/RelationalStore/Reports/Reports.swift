package import Model
package import Store

extension RelationalStore {
    package func summary(run: Int64) async throws -> DeliveryCounts {
        try await snapshot(.short) { db in try RunRow.require(db, run).counts }
    }

    package func report(_ run: Int64) async throws -> Report {
        try await snapshot(.expensive) { db in
            let row = try RunRow.require(db, run)
            return try Report(row, OutcomeSummary(db, run).tally() ?? DeliveryTally(db, run: run), db)
        }
    }

    package func keptReport(_ run: Int64) async throws -> Report? {
        try await snapshot(.short) { db in
            let row = try RunRow.require(db, run)
            return try OutcomeSummary(db, run).tally().map { try Report(row, $0, db) }
        }
    }

    package func check(_ run: Int64) async throws -> SumCheck {
        try await snapshot(.expensive) { db in
            let stored = try RunRow.require(db, run).counts
            let summary = OutcomeSummary(db, run)
            let kept = try summary.tally()
            let prunedAt = try summary.prunedAt()
            let rows = try prunedAt == nil ? DeliveryTally(db, run: run) : kept
            let recounted = rows?.total ?? DeliveryCounts()
            var problems = try RunAudit(db, run).problems(
                stored: stored, recounted: recounted, hasDeliveries: prunedAt == nil)
            if let kept, let rows, !kept.agrees(with: rows) {
                problems.append("the summary of its outcomes does not match the rows")
            }
            return SumCheck(stored: stored, recounted: recounted, problems: problems, prunedAt: prunedAt)
        }
    }
}

extension Report {
    fileprivate init(_ run: Run, _ tally: DeliveryTally, _ db: some SQLSession) throws {
        let devices = try db.first("SELECT devices_gone, devices_suspended FROM run WHERE id = $1", run.id) {
            (gone: try $0.int(0), suspended: try $0.int(1))
        }
        self.init(run: run, tally, devicesGone: devices?.gone ?? 0, devicesSuspended: devices?.suspended ?? 0)
    }
}

/// Finds contradictions in the rows of a run.
private struct RunAudit<Session: SQLSession> {
    private let db: Session
    private let run: Int64

    init(_ db: Session, _ run: Int64) {
        self.db = db
        self.run = run
    }

    func problems(stored: DeliveryCounts, recounted: DeliveryCounts, hasDeliveries: Bool) throws -> [String] {
        var problems = SumCheck.problems(stored: stored, recounted: recounted)
        let open = try count("SELECT CAST(coalesce(sum(open), 0) AS bigint) FROM lease WHERE run_id = $1")
        if open != stored.leased {
            problems.append(
                "the leases wait for \(open.counted("outcome")), but the counts show \(stored.leased) in flight")
        }
        let stranded =
            hasDeliveries
            ? try count(
                """
                SELECT count(*) FROM \(Session.dialect.deliveries(of: run))
                WHERE \(Session.dialect.isOf(parameter: 1)) AND state = \(DeliveryState.pending.code)
                    AND not_before = \(NotBefore.inFlight)
                """) : 0
        if stranded > open { problems.append("\(stranded) deliveries are marked in flight, but \(open) are") }
        problems += try TimelineRow.timeline(of: run, db).problems(besides: stored)
        if try !isDefinitionWhole() { problems.append("the definition was changed after the run was created") }
        return problems
    }

    private func count(_ sql: SQLStatement) throws -> Int { try db.first(sql, run) { try $0.int(0) } ?? 0 }

    private func isDefinitionWhole() throws -> Bool {
        try db.first("SELECT definition, definition_hash FROM run WHERE id = $1", run) { row in
            try RunDefinitionText(json: row.text(0)).hash == row.int64(1)
        } ?? false
    }
}
