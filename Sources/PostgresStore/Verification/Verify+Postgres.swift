package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func verify(
        budgets: [String: Configuration.SilentBudget], faultsMax: Int
    ) async throws -> Verification {
        let budgets = SilentBudgets(byTopic: budgets)
        var checks = [
            Verification.Check(
                "structure", "the server finds nothing broken of its own",
                faults: try await integrity().map { StoreFault($0) }),
            try await check(ValueCheck.name, ValueCheck.promise, ValueCheck.find),
        ]
        for rows in RowCheck.devices + RowCheck.runs {
            checks.append(try await check(rows.name, rows.promise) { try rows.find($0, faultsMax: faultsMax) })
        }
        checks += try await deliveries(faultsMax: faultsMax)
        checks.append(try await check(EventChain.name, EventChain.promise, EventChain.faults))
        checks.append(try await sums())
        checks += try await leases()
        checks.append(
            try await check(StageCheck.name, StageCheck.promise) { db in
                let runs = try RunRow.list(
                    db, "WHERE outcomes_pruned_at IS NULL AND id IN (SELECT run_id FROM run_stage)"
                ).readable
                let faults = try runs.flatMap { try StageCheck.faults($0, RunStages(db, $0, actor: "verify")) }
                return Verification.Check(StageCheck.name, StageCheck.promise, faults: faults, compared: runs.count)
            })
        checks.append(try await check(ApprovalCheck.name, ApprovalCheck.promise, Self.approvalFaults))
        checks.append(
            try await check(LedgerScan.name, LedgerScan.promise) { db in
                let scan = try LedgerScan(db) { budgets[$0] }
                return Verification.Check(LedgerScan.name, LedgerScan.promise, faults: scan.violations)
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
                    LedgerCoverCheck.name, LedgerCoverCheck.promise, faults: cover.faults, compared: cover.compared)
            })
        return Verification(checks: try await cut(checks, to: faultsMax))
    }

    package func verifyLedger(_ budget: Configuration.SilentBudget) async throws -> LedgerCheck {
        try await read { db in
            let scan = try LedgerScan(db) { _ in budget }
            return LedgerCheck(devices: scan.devices, pushes: scan.pushes, violations: scan.violations.count)
        }
    }

    private func check(
        _ name: String, _ promise: String, _ find: @escaping @Sendable (PostgresSession) throws -> Verification.Check
    ) async throws -> Verification.Check {
        do {
            return try await read(find)
        } catch let error as StoreError where !error.isSomebodyElse && !error.isPassing {
            return Verification.Check(name, promise, faults: [StoreFault("\(error)")], isCountAtLeast: true)
        }
    }

    /// Run by run, each in a snapshot of its own, and put together by promise.
    private func deliveries(faultsMax: Int) async throws -> [Verification.Check] {
        let runs = try await runsWithDeliveries()
        var checks = RowCheck.deliveries(of: DeliveryTable(run: 0), time: pool.time).map {
            Verification.Check($0.name, $0.promise, faults: [])
        }
        for run in runs {
            try Task.checkCancellation()
            for (index, rows) in RowCheck.deliveries(of: DeliveryTable(run: run), time: pool.time).enumerated() {
                let found = try await check(rows.name, rows.promise) { db in
                    // Pruned since the runs were listed.
                    guard try OutcomeSummary(db, run).prunedAt() == nil else {
                        return Verification.Check(rows.name, rows.promise, faults: [])
                    }
                    return try rows.find(db, faultsMax: faultsMax)
                }
                checks[index].faults += found.faults
                checks[index].faultCount += found.faultCount
                checks[index].isCountAtLeast = checks[index].isCountAtLeast || found.isCountAtLeast
            }
        }
        return checks
    }

    private func runsWithDeliveries() async throws -> [Int64] {
        try await read(.short) { db in
            try db.all("SELECT id FROM run WHERE outcomes_pruned_at IS NULL ORDER BY id") { try $0.int64(0) }
        }
    }

    private func sums() async throws -> Verification.Check {
        let runs = try await read { db in try db.all("SELECT id FROM run ORDER BY id") { try $0.int64(0) } }
        var faults: [StoreFault] = []
        for run in runs {
            try Task.checkCancellation()
            do {
                faults += try await check(run).problems.map { StoreFault(run: run, $0) }
            } catch StoreError.noSuchRun {
                continue
            } catch let error as StoreError where !error.isSomebodyElse && !error.isPassing {
                faults.append(StoreFault(run: run, "\(error)"))
            }
        }
        return Verification.Check(
            "sums",
            "audience = pending + leased + accepted + rejected + unknown + suppressed, "
                + "and the rows say the same", faults: faults)
    }

    private func leases() async throws -> [Verification.Check] {
        let found = try await read { db in
            let check = try LeaseCheck(db)
            return (check.faults, check.doubles)
        }
        return [
            Verification.Check(LeaseCheck.name, LeaseCheck.promise, faults: found.0),
            Verification.Check(LeaseCheck.doubleName, LeaseCheck.doublePromise, faults: found.1),
        ]
    }

    /// Keeps the first faults of each and adds the end of each device's token.
    private func cut(_ checks: [Verification.Check], to faultsMax: Int) async throws -> [Verification.Check] {
        var checks = checks
        for index in checks.indices {
            checks[index].faults = Array(checks[index].faults.prefix(faultsMax))
            for fault in checks[index].faults.indices {
                guard let device = checks[index].faults[fault].device else { continue }
                checks[index].faults[fault].tokenEnd = try await tokenEnd(of: device)
            }
        }
        return checks
    }

    private func tokenEnd(of device: Int64) async throws -> String? {
        try await read { db in
            try db.first(
                "SELECT encode(substr(token, greatest(length(token) - 3, 1)), 'hex') FROM device WHERE id = $1", device
            ) { try $0.text(0) }
        }
    }
}

/// What the columns of each table allow: a rule may have been switched off, or put back without a look at the rows.
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
            if broken > 0 { faults.append(StoreFault("\(broken) of \(table) break the rule \(condition)")) }
        }
        return Verification.Check(name, promise, faults: faults)
    }
}
