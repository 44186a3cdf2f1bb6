import GRDB
import Store

/// A lease while outcomes of it are being recorded.
struct OpenLease {
    let id: Int64
    let hasUnproven: Bool
    let isSilent: Bool
    /// Outcomes recorded now.
    var settled = 0

    /// Nil when the lease is over, or another run's.
    init?(_ db: Database, _ id: Int64, run: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT unproven, is_silent FROM lease WHERE id = :lease AND run_id = :run"),
            arguments: ["lease": id, "run": run])
        guard let row else { return nil }
        self.id = id
        hasUnproven = (row[0] as Int) > 0
        isSilent = row[1]
    }

    /// The lease ends with its last outcome.
    func write(_ db: Database) throws {
        guard settled > 0 else { return }
        try db.cachedStatement(sql: "DELETE FROM lease WHERE id = :lease AND open <= :settled")
            .execute(arguments: ["lease": id, "settled": settled])
        guard db.changesCount == 0 else { return }
        try db.cachedStatement(sql: "UPDATE lease SET open = open - :settled WHERE id = :lease")
            .execute(arguments: ["lease": id, "settled": settled])
    }
}
