import GRDB
import Store

/// The tables, indexes and views of a store against those its version makes.
enum SchemaCheck {
    static let name = "schema"
    static let promise = "every table, index and view is the one this version made"

    static func find(_ db: Database) throws -> Verification.Check {
        let expected = try DatabaseQueue().write { fresh in
            for sql in Schema.migrations { try fresh.execute(sql: sql) }
            return try objects(fresh)
        }
        let found = try objects(db)
        let faults = Set(expected.keys).union(found.keys).sorted().compactMap { name -> StoreFault? in
            switch (expected[name], found[name]) {
            case (nil, _): StoreFault("\(name) is not ours")
            case (_, nil): StoreFault("\(name) is missing")
            case (let left, let right): left == right ? nil : StoreFault("\(name) is not as it was made")
            }
        }
        return Verification.Check(name, promise, faults: faults)
    }

    private static func objects(_ db: Database) throws -> [String: String] {
        let rows = try Row.fetchAll(db, sql: "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { first, _ in first })
    }
}
