package import Store

extension PostgresDatabase {
    package func engineChecks(faultsMax: Int) async throws -> [Verification.Check] {
        [
            Verification.Check(
                "structure", "the server finds no damage in its own structures",
                faults: try await integrity().map { StoreFault($0) }),
            try await check(ValueCheck.name, ValueCheck.promise, ValueCheck.find),
        ]
    }
}

/// Checks every value against the rule of its column. A rule may have been disabled, or restored without a check of
/// the existing rows.
private enum ValueCheck {
    static let name = "values"
    static let promise = "every value is one that its column allows"

    static func find(_ db: PostgresSession) throws -> Verification.Check {
        let rules = try db.all(
            """
            SELECT conrelid::regclass::text, pg_get_constraintdef(pg_constraint.oid), convalidated
            FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
            WHERE contype = 'c' AND relnamespace = current_schema()::regnamespace AND relkind = 'r'
                AND NOT relispartition
            ORDER BY 1, 2
            """
        ) { (table: try $0.text(0), rule: try $0.text(1)) }
        var faults: [StoreFault] = []
        for (table, rule) in rules {
            let condition = rule.replacing("CHECK ", with: "").replacing(" NOT VALID", with: "")
            let broken =
                try db.first(.once("SELECT count(*) FROM \(table) WHERE NOT \(condition)")) { try $0.int(0) } ?? 0
            if broken > 0 { faults.append(StoreFault("\(broken) row(s) of \(table) break the rule \(condition)")) }
        }
        return Verification.Check(name, promise, faults: faults)
    }
}
