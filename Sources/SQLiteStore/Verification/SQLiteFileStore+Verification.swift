import GRDB
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func engineChecks(faultsMax: Int) async throws -> [Verification.Check] {
        [
            try await check("structure", "SQLite's integrity check finds no errors") { db in
                try Self.structure(db, faultsMax: faultsMax)
            },
            try await check(SchemaCheck.name, SchemaCheck.promise, SchemaCheck.find),
            try await check(ValueCheck.name, ValueCheck.promise, ValueCheck.find),
            try await check("foreign_keys", "every row that another row refers to exists", Self.foreignKeys),
        ]
    }

    private static func structure(_ db: Database, faultsMax: Int) throws -> Verification.Check {
        let faults = try String.fetchAll(db, sql: "PRAGMA integrity_check(\(faultsMax + 1))").filter { $0 != "ok" }
        return Verification.Check(
            "structure", "SQLite's integrity check finds no errors", faults: faults.map { StoreFault($0) },
            isCountAtLeast: faults.count > faultsMax)
    }

    private static func foreignKeys(_ db: Database) throws -> Verification.Check {
        let faults = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").map { row in
            let source = (row[1] as Int64?).map { "row \($0) of" } ?? "a row of"
            return StoreFault("\(source) \(row[0] as String) refers to a \(row[2] as String) that does not exist")
        }
        return Verification.Check("foreign_keys", "every row that another row refers to exists", faults: faults)
    }
}

/// Compares the tables, indexes and views of a store with those that its version creates.
enum SchemaCheck {
    static let name = "schema"
    static let promise = "every table, index and view matches this version"

    static func find(_ db: Database) throws -> Verification.Check {
        let expected = try made()
        let found = try objects(db)
        // A first load is in progress, or was killed. The next process that opens the store for writing creates these
        // indexes.
        let putOff = Set(try DeferredIndexes(db).names().map { "index \($0)" })
        let faults = Set(expected.keys).union(found.keys).sorted().compactMap { name -> StoreFault? in
            switch (expected[name], found[name]) {
            case (nil, _): StoreFault("\(name) does not belong to Fanfare")
            case (_, nil): putOff.contains(name) ? nil : StoreFault("\(name) is missing")
            case (let left, let right): left == right ? nil : StoreFault("\(name) differs from its definition")
            }
        }
        return Verification.Check(name, promise, faults: faults)
    }

    /// Returns the objects of a new store, each with its statement.
    fileprivate static func made() throws -> [String: String] {
        try DatabaseQueue().write { fresh in
            for sql in Schema.migrations { try fresh.execute(sql: sql) }
            return try objects(fresh)
        }
    }

    fileprivate static func objects(_ db: Database) throws -> [String: String] {
        let rows = try Row.fetchAll(db, sql: "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { first, _ in first })
    }
}

/// Checks the values against the rules of each table's columns. In a file that is opened for reading only, SQLite's
/// `integrity_check` does not evaluate CHECK constraints.
enum ValueCheck {
    static let name = "values"
    static let promise = "every value is one that its column allows"

    static func find(_ db: Database) throws -> Verification.Check {
        let found = try SchemaCheck.objects(db)
        var faults: [StoreFault] = []
        for (object, sql) in try SchemaCheck.made().sorted(by: { $0.key < $1.key })
        where object.hasPrefix("table ") && found[object] != nil {
            let table = String(object.dropFirst("table ".count))
            let rules = rules(of: sql)
            guard !rules.isEmpty else { continue }
            // Read each row once for all rules. A CHECK that evaluates to NULL is not broken.
            let broken = rules.map { "coalesce(sum(NOT (\($0))), 0)" }.joined(separator: ", ")
            guard let counts = try Row.fetchOne(db, sql: "SELECT \(broken) FROM \(table) NOT INDEXED") else { continue }
            for (index, rule) in rules.enumerated() where counts[index] as Int > 0 {
                faults.append(StoreFault("\(counts[index] as Int) row(s) of \(table) break the rule \(rule)"))
            }
        }
        return Verification.Check(name, promise, faults: faults)
    }

    /// Returns the expression in the brackets of each CHECK.
    private static func rules(of sql: String) -> [String] {
        sql.split(separator: "CHECK (", omittingEmptySubsequences: false).dropFirst().map { rest in
            var depth = 1
            return String(
                rest.prefix { character in
                    if character == "(" { depth += 1 }
                    if character == ")" { depth -= 1 }
                    return depth > 0
                })
        }
    }
}
