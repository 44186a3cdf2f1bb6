import GRDB
import Model
import RelationalStore
import Store

/// Records outcomes in the transaction of `db`. It runs one update for the plain acceptances of a lease, and one for
/// each other delivery. Everything else is written once per batch, or only for the few deliveries that need it.
struct SettlementBatch {
    private let db: Database
    private let run: Int64
    private let now: Timestamp
    private let statement: SettlementStatement
    private let ledger: SilentLedger
    private let caps: CapLedger
    private let badges: BadgeCount?

    init(_ db: Database, run: Int64, now: Timestamp) throws {
        self.db = db
        self.run = run
        self.now = now
        statement = try SettlementStatement(db, run: run, now: now)
        ledger = SilentLedger(db)
        caps = CapLedger(db)
        badges = try BadgeCount(db, run: run)
    }

    func record(_ settlements: [Settlement]) throws -> DeliveryCounts {
        var effects = Effects()
        for (lease, part) in settlements.byLease { try record(part, ofLease: lease, &effects) }
        if !effects.staged.isEmpty { try StageController.of(run, at: now, db)?.count(effects.staged) }
        try caps.settle(effects.capped, run: run, at: now)
        try TokenProofs.record(effects.proofs, db)
        try FoundGone(db, run: run).note(effects.gone)
        let rejected = effects.gone.map(\.settlement).filter { $0.verdict == .rejected }.map(\.device)
        let replaced = try UserFallbacks(db, run: run, at: now).replace(rejected)
        effects.change.reopen(replaced)
        return try RunRow.add(effects.change, effects.attempts, replacing: replaced, to: run, at: now, db)
    }

    /// The changes that are written once for all outcomes of a batch.
    private struct Effects {
        var change = DeliveryCounts()
        var attempts = SettledAttempts()
        var staged: [(Settlement, PushEnvironment)] = []
        var capped: [CapOutcome] = []
        var proofs = NewProofs()
        var gone: [(settlement: Settlement, since: Timestamp)] = []
    }

    private func record(_ settlements: ArraySlice<Settlement>, ofLease id: Int64, _ effects: inout Effects) throws {
        guard var lease = try OpenLease(db, id, run: run) else {
            for settlement in settlements { try extendLedger(settlement, &effects.capped) }
            return
        }
        var range = AcceptedRange(settlements)
        if let made = range, try !record(made) { range = nil }
        for settlement in settlements {
            let isRecorded = range?.take(settlement) ?? false
            guard try isRecorded || statement.record(settlement) else {
                try extendLedger(settlement, &effects.capped)
                continue
            }
            lease.settled += 1
            effects.change.settle(settlement.verdict)
            effects.attempts.count(settlement)
            try badges?.count(settlement)
            if settlement.stage != nil { effects.staged.append((settlement, lease.environment)) }
            if lease.isSilent { try settleLedger(settlement) }
            if lease.isCapped { effects.capped.append(CapOutcome(settlement)) }
            if lease.hasUnproven, settlement.verdict == .accepted {
                effects.proofs.add(device: settlement.device, generation: settlement.generation)
            }
            if case .gone(let since) = settlement.effect { effects.gone.append((settlement, since)) }
        }
        try lease.write(db)
    }

    /// Returns `false` and changes nothing if any of the deliveries already has its outcome.
    private func record(_ range: AcceptedRange) throws -> Bool {
        var isWhole = false
        try db.inSavepoint {
            let update = try RowStatement(db, Self.acceptance)
            try update.bind(run, update.parameter(":run"))
            try update.bind(now.milliseconds, update.parameter(":now"))
            try update.bind(Int64(range.leaseNumber), update.parameter(":number"))
            try update.bind(Int64(range.attempt), update.parameter(":attempt"))
            try update.bind(Int64(range.generation), update.parameter(":generation"))
            try update.bind(range.first, update.parameter(":first"))
            try update.bind(range.last, update.parameter(":last"))
            try update.bind(range.codes, update.parameter(":codes"))
            try update.run()
            isWhole = update.changes == range.count
            return isWhole ? .commit : .rollback
        }
        return isWhole
    }

    private static let acceptance = """
        UPDATE delivery SET
            state = \(DeliveryState.accepted.rawValue), leases = :number, attempt = :attempt, generation = :generation, not_before = NULL,
            status = \(Settlement.acceptedStatus), reason = NULL,
            locale_index = nullif(byte_at(:codes, device_id - :first) - 2, -1), changed_at = :now
        WHERE run_id = :run AND device_id BETWEEN :first AND :last AND state = \(DeliveryState.pending.rawValue)
            AND leases = :number - 1 AND byte_at(:codes, device_id - :first) > 0
        """

    private func settleLedger(_ settlement: Settlement) throws {
        if settlement.mayHaveReachedAPNs {
            try ledger.close(device: settlement.device, run: run, number: settlement.leaseNumber, at: now)
        } else {
            try ledger.releaseSlots(device: settlement.device, run: run, number: settlement.leaseNumber)
        }
    }

    /// Records a late outcome in the ledgers. The push may have been sent after another process closed its lease.
    private func extendLedger(_ settlement: Settlement, _ capped: inout [CapOutcome]) throws {
        guard settlement.mayHaveReachedAPNs else { return }
        capped.append(CapOutcome(settlement))
        try ledger.close(device: settlement.device, run: run, number: settlement.leaseNumber, at: now)
    }
}

/// The statement that records one outcome of a delivery.
struct SettlementStatement {
    private static let sql = """
        UPDATE delivery SET
            state = :state, leases = :before + 1, attempt = :attempt, doubts = doubts + :doubt,
            excused = excused + :excused, generation = :generation,
            not_before = :not_before, locale_index = :locale, status = :status, reason = :reason, changed_at = :now
        WHERE run_id = :run AND device_id = :device AND state = \(DeliveryState.pending.rawValue) AND leases = :before
        """

    private let update: RowStatement
    private let device, before, state, attempt, doubt, excused, generation, notBefore, locale, status, reason: Int32

    init(_ db: Database, run: Int64, now: Timestamp) throws {
        update = try RowStatement(db, Self.sql)
        device = update.parameter(":device")
        before = update.parameter(":before")
        state = update.parameter(":state")
        attempt = update.parameter(":attempt")
        doubt = update.parameter(":doubt")
        excused = update.parameter(":excused")
        generation = update.parameter(":generation")
        notBefore = update.parameter(":not_before")
        locale = update.parameter(":locale")
        status = update.parameter(":status")
        reason = update.parameter(":reason")
        try update.bind(run, update.parameter(":run"))
        try update.bind(now.milliseconds, update.parameter(":now"))
    }

    /// Returns `false` if this lease of the delivery already has its outcome.
    func record(_ settlement: Settlement) throws -> Bool {
        try update.bind(settlement.device, device)
        try update.bind(Int64(settlement.leaseNumber) - 1, before)
        try update.bind(Int64(settlement.attempt), attempt)
        try update.bind(settlement.isInDoubt ? 1 : Int64(0), doubt)
        try update.bind(settlement.isExcused ? 1 : Int64(0), excused)
        try update.bind(Int64(settlement.generation), generation)
        try update.bind(settlement.localeIndex.map(Int64.init), locale)
        try update.bind(Int64(settlement.status), status)
        switch settlement.verdict {
        case .accepted: try bind(.accepted, reason: settlement.reason)
        case .rejected: try bind(.rejected, reason: settlement.reason)
        case .unknown: try bind(.unknown, reason: settlement.reason)
        case .retry(let moment): try bind(.pending, reason: settlement.reason, notBefore: moment.milliseconds)
        case .suppressed(let why): try bind(.suppressed, reason: why.rawValue)
        }
        try update.run()
        return update.changes > 0
    }

    private func bind(_ state: DeliveryState, reason: String?, notBefore: Int64? = nil) throws {
        try update.bind(Int64(state.rawValue), self.state)
        try update.bind(reason, self.reason)
        try update.bind(notBefore, self.notBefore)
    }
}

/// A lease whose outcomes are being recorded.
struct OpenLease {
    let id: Int64
    let hasUnproven: Bool
    let isSilent: Bool
    let isCapped: Bool
    let environment: PushEnvironment
    /// The number of outcomes recorded in this batch.
    var settled = 0

    /// Returns `nil` if the lease has ended or belongs to another run.
    init?(_ db: Database, _ id: Int64, run: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT unproven, is_silent, environment, is_capped FROM lease WHERE id = :lease AND run_id = :run"
            ),
            arguments: ["lease": id, "run": run])
        guard let row else { return nil }
        self.id = id
        hasUnproven = (row[0] as Int) > 0
        isSilent = row[1]
        environment = PushEnvironment(code: row[2])
        isCapped = row[3]
    }

    /// Updates the lease. The lease ends with its last outcome.
    func write(_ db: Database) throws {
        guard settled > 0 else { return }
        try db.cachedStatement(sql: "DELETE FROM lease WHERE id = :lease AND open <= :settled")
            .execute(arguments: ["lease": id, "settled": settled])
        guard db.changesCount == 0 else { return }
        try db.cachedStatement(sql: "UPDATE lease SET open = open - :settled WHERE id = :lease")
            .execute(arguments: ["lease": id, "settled": settled])
    }
}
