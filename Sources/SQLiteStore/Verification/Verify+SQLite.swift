import GRDB
package import Model
package import Store
import RelationalStore

extension SQLiteFileStore {
    package func verify(
        budgets: [String: Model.Configuration.SilentBudget], faultsMax: Int
    ) async throws -> Verification {
        let budgets = SilentBudgets(byTopic: budgets)
        var checks = [
            try await check("structure", "SQLite finds its file in order") { db in
                try Self.structure(db, faultsMax: faultsMax)
            },
            try await check(SchemaCheck.name, SchemaCheck.promise, SchemaCheck.find),
            try await check(ValueCheck.name, ValueCheck.promise, ValueCheck.find),
            try await check("foreign_keys", "what a row refers to is there", Self.foreignKeys),
        ]
        for rows in RowCheck.devices + RowCheck.runs + RowCheck.deliveries {
            checks.append(try await check(rows.name, rows.promise) { try rows.find($0, faultsMax: faultsMax) })
        }
        checks.append(try await check(EventChain.name, EventChain.promise) { try EventChain($0).faults() })
        checks.append(try await sums())
        checks += try await leases()
        checks.append(
            try await check(StageCheck.name, StageCheck.promise) { db in
                let runs = try RunRow.list(db, "WHERE id IN (SELECT run_id FROM run_stage)").readable
                let faults = try runs.flatMap { try StageCheck.faults($0, RunStages(db, $0, actor: "verify")) }
                return Verification.Check(StageCheck.name, StageCheck.promise, faults: faults, compared: runs.count)
            })
        checks.append(
            try await check(ApprovalCheck.name, ApprovalCheck.promise) { db in
                try Self.approvalFaults(db)
            })
        checks.append(
            try await check(LedgerScan.name, LedgerScan.promise) { db in
                let scan = try LedgerScan(db, recorded: try SilentLedger(db).recordedBudgets()) { budgets[$0] }
                return Verification.Check(
                    LedgerScan.name, LedgerScan.promise, faults: scan.violations, warnings: scan.doubts)
            })
        checks.append(
            try await check(CapScan.name, CapScan.promise) { db in
                let scan = try CapScan(db)
                return Verification.Check(
                    CapScan.name, CapScan.promise, faults: scan.violations, compared: scan.pushes)
            })
        checks.append(
            try await check(CapCover.name, CapCover.promise) { db in
                let cover = try CapCover(db, CapScan(db))
                return Verification.Check(
                    CapCover.name, CapCover.promise, faults: cover.faults, compared: cover.compared)
            })
        checks.append(
            try await check(LedgerCoverCheck.name, LedgerCoverCheck.promise) { db in
                let cover = try LedgerCoverCheck(db, budgets: budgets)
                return Verification.Check(
                    LedgerCoverCheck.name, LedgerCoverCheck.promise, faults: cover.faults, warnings: cover.doubts,
                    compared: cover.compared)
            })
        return Verification(checks: try await cut(checks, to: faultsMax))
    }

    package func verifyLedger(_ budget: Model.Configuration.SilentBudget) async throws -> LedgerCheck {
        try await read { db in
            let scan = try LedgerScan(db) { _ in budget }
            return LedgerCheck(devices: scan.devices, pushes: scan.pushes, violations: scan.violations.count)
        }
    }

    private func check(
        _ name: String, _ promise: String, _ find: @escaping @Sendable (Database) throws -> Verification.Check
    ) async throws -> Verification.Check {
        do {
            return try await read(find)
        } catch let error as StoreError where !error.isSomebodyElse {
            return Verification.Check(name, promise, faults: [StoreFault("\(error)")], isCountAtLeast: true)
        }
    }

    private static func structure(_ db: Database, faultsMax: Int) throws -> Verification.Check {
        let faults = try String.fetchAll(db, sql: "PRAGMA integrity_check(\(faultsMax + 1))").filter { $0 != "ok" }
        return Verification.Check(
            "structure", "SQLite finds its file in order", faults: faults.map { StoreFault($0) },
            isCountAtLeast: faults.count > faultsMax)
    }

    private static func foreignKeys(_ db: Database) throws -> Verification.Check {
        let faults = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").map { row in
            let source = (row[1] as Int64?).map { "row \($0) of" } ?? "a row of"
            return StoreFault("\(source) \(row[0] as String) refers to a \(row[2] as String) that is not there")
        }
        return Verification.Check("foreign_keys", "what a row refers to is there", faults: faults)
    }

    /// Run by run, so that none of the snapshots lasts.
    private func sums() async throws -> Verification.Check {
        let runs = try await read { try Int64.fetchAll($0, sql: "SELECT id FROM run ORDER BY id") }
        var faults: [StoreFault] = []
        for run in runs {
            try Task.checkCancellation()
            do {
                faults += try await check(run).problems.map { StoreFault(run: run, $0) }
            } catch StoreError.noSuchRun {
                continue
            } catch let error as StoreError where !error.isSomebodyElse {
                faults.append(StoreFault(run: run, "\(error)"))
            }
        }
        return Verification.Check(
            "sums",
            "audience = pending + leased + accepted + rejected + unknown + suppressed, "
                + "and the rows say the same", faults: faults)
    }

    private func leases() async throws -> [Verification.Check] {
        do {
            return try await read { db in
                let found = try LeaseCheck(db)
                return [
                    Verification.Check(LeaseCheck.name, LeaseCheck.promise, faults: found.faults),
                    Verification.Check(LeaseCheck.doubleName, LeaseCheck.doublePromise, faults: found.doubles),
                ]
            }
        } catch let error as StoreError where !error.isSomebodyElse {
            return [
                Verification.Check(
                    LeaseCheck.name, LeaseCheck.promise, faults: [StoreFault("\(error)")], isCountAtLeast: true)
            ]
        }
    }

    /// Keeps the first faults of each and adds the end of each device's token.
    private func cut(_ checks: [Verification.Check], to faultsMax: Int) async throws -> [Verification.Check] {
        var checks = checks
        for index in checks.indices {
            checks[index].faults = Array(checks[index].faults.prefix(faultsMax))
            checks[index].warnings = Array(checks[index].warnings.prefix(faultsMax))
            for fault in checks[index].faults.indices {
                guard let device = checks[index].faults[fault].device else { continue }
                checks[index].faults[fault].tokenEnd = try await tokenEnd(of: device)
            }
        }
        return checks
    }

    /// Nil also where damage hides the device: what is wrong has been said by then.
    private func tokenEnd(of device: Int64) async throws -> String? {
        do {
            return try await read { db in
                try String.fetchOne(
                    db, sql: "SELECT lower(hex(substr(token, -4))) FROM device WHERE id = :device",
                    arguments: ["device": device])
            }
        } catch is StoreError {
            return nil
        }
    }
}

/// The tables, indexes and views of a store against those its version makes.
enum SchemaCheck {
    static let name = "schema"
    static let promise = "every table, index and view is the one this version made"

    static func find(_ db: Database) throws -> Verification.Check {
        let expected = try made()
        let found = try objects(db)
        // A first load is under way, or was killed: whoever opens the store for writing makes them.
        let putOff = Set(try PutOffIndexes(db).names().map { "index \($0)" })
        let faults = Set(expected.keys).union(found.keys).sorted().compactMap { name -> StoreFault? in
            switch (expected[name], found[name]) {
            case (nil, _): StoreFault("\(name) is not ours")
            case (_, nil): putOff.contains(name) ? nil : StoreFault("\(name) is missing")
            case (let left, let right): left == right ? nil : StoreFault("\(name) is not as it was made")
            }
        }
        return Verification.Check(name, promise, faults: faults)
    }

    /// Of a new store, each with its statement.
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

/// What the columns of each table allow. SQLite knows nothing of a CHECK in a file that it only reads: there
/// `integrity_check` leaves them out.
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
            // One look at each row for all rules; NULL is for NOT NULL to refuse.
            let broken = rules.map { "coalesce(sum(NOT (\($0))), 0)" }.joined(separator: ", ")
            guard let counts = try Row.fetchOne(db, sql: "SELECT \(broken) FROM \(table) NOT INDEXED") else { continue }
            for (index, rule) in rules.enumerated() where counts[index] as Int > 0 {
                faults.append(StoreFault("\(counts[index] as Int) of \(table) break the rule \(rule)"))
            }
        }
        return Verification.Check(name, promise, faults: faults)
    }

    /// What stands in the brackets of each CHECK.
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
