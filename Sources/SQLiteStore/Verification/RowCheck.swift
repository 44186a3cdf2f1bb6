import GRDB
import Store

/// A promise that one statement can check: it selects `run`, `device` and `what` of each row that breaks it.
struct RowCheck {
    let name: String
    let promise: String
    private let sql: String

    init(_ name: String, _ promise: String, _ sql: String) {
        self.name = name
        self.promise = promise
        self.sql = sql
    }

    /// Counts beyond `faultsMax` without keeping.
    func find(_ db: Database, faultsMax: Int) throws -> Verification.Check {
        let rows = try Row.fetchCursor(db, sql: sql)
        var faults: [StoreFault] = []
        var count = 0
        while let row = try rows.next() {
            count += 1
            if count <= faultsMax { faults.append(StoreFault(run: row[0], device: row[1], row[2])) }
        }
        return Verification.Check(name, promise, faults: faults, count: count)
    }
}
