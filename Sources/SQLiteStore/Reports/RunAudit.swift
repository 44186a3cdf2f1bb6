import GRDB
import Store
import Model

/// Looks for what must never be in the rows of a run.
struct RunAudit {
    private let db: Database
    private let run: Int64

    init(_ db: Database, _ run: Int64) {
        self.db = db
        self.run = run
    }

    func problems(stored: DeliveryCounts, recounted: DeliveryCounts) throws -> [String] {
        var problems: [String] = []
        if !stored.closes { problems.append("the account adds up to \(stored.sum), not to \(stored.audience)") }
        if stored != recounted { problems.append("the account says \(stored), the rows say \(recounted)") }
        let open = try count("SELECT coalesce(sum(open), 0) FROM lease WHERE run_id = :run")
        if open != stored.leased {
            problems.append("leases wait for \(open) outcomes, the account for \(stored.leased)")
        }
        let stranded = try count(
            """
            SELECT count(*) FROM delivery
            WHERE run_id = :run AND state = 0 AND not_before = 9223372036854775807
            """)
        if stranded > open { problems.append("\(stranded) deliveries are marked in flight, \(open) are") }
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
