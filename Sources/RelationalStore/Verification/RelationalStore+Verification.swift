package import Model
package import Store

extension RelationalStore {
    package func verify(
        budgets: [String: Configuration.SilentBudget], faultsMax: Int
    ) async throws -> Verification {
        var checks = try await engineChecks(faultsMax: faultsMax)
        for rows in RowCheck<Session>.devices + RowCheck<Session>.runs {
            checks.append(try await check(rows.name, rows.promise) { try rows.find($0, faultsMax: faultsMax) })
        }
        checks += try await deliveries(faultsMax: faultsMax)
        checks.append(try await check(EventRecord.name, EventRecord.promise) { try $0.eventFaults() })
        checks.append(try await sums())
        checks += try await leases()
        checks.append(try await check(StageCheck.name, StageCheck.promise, Self.stageFaults))
        checks.append(try await check(ApprovalCheck.name, ApprovalCheck.promise, Self.approvalFaults))
        checks.append(
            try await check(WaitingFeedbackCheck.name, WaitingFeedbackCheck.promise) {
                try WaitingFeedbackCheck.faults($0)
            })
        checks.append(
            try await check(FeedbackCountCheck<Session>.name, FeedbackCountCheck<Session>.promise) {
                try FeedbackCountCheck($0).faults()
            })
        checks += try await ledgerChecks(SilentBudgets(byTopic: budgets))
        return Verification(checks: try await cut(checks, to: faultsMax))
    }

    package func verifyLedger(_ budget: Configuration.SilentBudget) async throws -> LedgerCheck {
        try await snapshot(.expensive) { db in
            let scan = try LedgerScan(db) { _ in budget }
            return LedgerCheck(devices: scan.devices, pushes: scan.pushes, violations: scan.violations.count)
        }
    }

    /// Runs a check. An error while reading is reported as a fault, unless another process or the network caused it.
    package func check(
        _ name: String, _ promise: String, _ find: @escaping @Sendable (Session) throws -> Verification.Check
    ) async throws -> Verification.Check {
        do {
            return try await snapshot(.expensive, find)
        } catch let error as StoreError where error.isFault {
            return Verification.Check(name, promise, faults: [StoreFault("\(error)")], isCountAtLeast: true)
        }
    }

    /// Checks deliveries. On PostgreSQL, it checks each run in a separate snapshot and combines the results by
    /// promise. On SQLite, one read of the table of all deliveries checks a promise.
    private func deliveries(faultsMax: Int) async throws -> [Verification.Check] {
        let isCallers = goesByCallersClock
        var checks = RowCheck<Session>.deliveries(of: nil, goesByCallersClock: isCallers).map {
            Verification.Check($0.name, $0.promise, faults: [])
        }
        let runs: [Int64?] = Session.dialect == .sqlite ? [nil] : try await runIDs("outcomes_pruned_at IS NULL")
        for run in runs {
            try Task.checkCancellation()
            let rows = RowCheck<Session>.deliveries(of: run, goesByCallersClock: isCallers)
            for (index, rows) in rows.enumerated() {
                let found = try await check(rows.name, rows.promise) { db in
                    // Skip a run that was pruned after the runs were listed.
                    if let run, try OutcomeSummary(db, run).prunedAt() != nil {
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

    private func runIDs(_ condition: String) async throws -> [Int64] {
        try await snapshot(.expensive) { db in
            try db.all("SELECT id FROM run WHERE \(condition) ORDER BY id") { try $0.int64(0) }
        }
    }

    /// Checks the counts run by run, so that each snapshot is short.
    private func sums() async throws -> Verification.Check {
        var faults: [StoreFault] = []
        for run in try await runIDs("true") {
            try Task.checkCancellation()
            do {
                faults += try await check(run).problems.map { StoreFault(run: run, $0) }
            } catch StoreError.noSuchRun {
                continue
            } catch let error as StoreError where error.isFault {
                faults.append(StoreFault(run: run, "\(error)"))
            }
        }
        return Verification.Check(
            "sums",
            "audience = pending + leased + accepted + rejected + unknown + suppressed, "
                + "and the rows match these counts", faults: faults)
    }

    private func leases() async throws -> [Verification.Check] {
        do {
            return try await snapshot(.expensive) { db in
                let found = try db.leaseCheck()
                return [
                    Verification.Check(LeaseCheck.name, LeaseCheck.promise, faults: found.faults),
                    Verification.Check(LeaseCheck.doubleName, LeaseCheck.doublePromise, faults: found.doubles),
                ]
            }
        } catch let error as StoreError where error.isFault {
            return [
                Verification.Check(
                    LeaseCheck.name, LeaseCheck.promise, faults: [StoreFault("\(error)")], isCountAtLeast: true)
            ]
        }
    }

    private static func stageFaults(_ db: Session) throws -> Verification.Check {
        let runs = try RunRow.list(db, "WHERE outcomes_pruned_at IS NULL AND id IN (SELECT run_id FROM run_stage)")
            .readable
        let faults = try runs.flatMap { run in
            try db.keepingNoLocks { try StageCheck.faults(run, RunStages(db, run, actor: "verify")) }
        }
        return Verification.Check(StageCheck.name, StageCheck.promise, faults: faults, compared: runs.count)
    }

    private func ledgerChecks(_ budgets: SilentBudgets) async throws -> [Verification.Check] {
        [
            try await check(LedgerScan.name, LedgerScan.promise) { db in
                let scan = try LedgerScan(db, recorded: try db.recordedBudgets()) { budgets[$0] }
                return Verification.Check(
                    LedgerScan.name, LedgerScan.promise, faults: scan.violations, warnings: scan.doubts)
            },
            try await check(CapScan.name, CapScan.promise) { db in
                let scan = try CapScan(db)
                return Verification.Check(CapScan.name, CapScan.promise, faults: scan.violations, compared: scan.pushes)
            },
            try await check(CapLedgerCheck.name, CapLedgerCheck.promise) { db in
                let cover = try CapLedgerCheck(db, CapScan(db))
                return Verification.Check(
                    CapLedgerCheck.name, CapLedgerCheck.promise, faults: cover.faults, compared: cover.compared)
            },
            try await check(LedgerCover<Session>.name, LedgerCover<Session>.promise) { db in
                let cover = try LedgerCover(db, budgets: budgets)
                return Verification.Check(
                    LedgerCover<Session>.name, LedgerCover<Session>.promise, faults: cover.faults,
                    warnings: cover.doubts, compared: cover.compared)
            },
        ]
    }

    /// Keeps the first faults of each check, and adds the token end of each fault's device.
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

    /// Returns the end of a device's token. Also returns `nil` if the device cannot be read because of damage, which
    /// other faults report.
    private func tokenEnd(of device: Int64) async throws -> String? {
        do {
            return try await snapshot(.expensive) { db in
                try db.first(
                    "SELECT \(Session.dialect.hexOfLast(4, of: "token")) FROM device WHERE id = $1", device
                ) { try $0.text(0) }
            }
        } catch let error as StoreError where error.isFault {
            return nil
        }
    }
}

/// The promise of each store's event chain.
package enum EventRecord {
    package static let name = "events"
    package static let promise = "the audit log is complete and unchanged"
}

extension StoreError {
    /// Whether `verify` reports the error and continues. An error that another process or the network caused ends
    /// `verify`, and a retry may succeed.
    fileprivate var isFault: Bool {
        switch self {
        case .unreachable, .accessRefused, .accessWithdrawn, .outcomeUnknown: false
        default: !isAnotherProgram
        }
    }
}
