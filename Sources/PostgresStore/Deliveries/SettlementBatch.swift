import Model
import Store
import RelationalStore

/// Records outcomes in one transaction, by a few statements for all of them.
///
/// Leases are locked in order of id, so that two transactions with outcomes of the same leases wait for each other. The
/// run's counts come last.
struct SettlementBatch {
    private let db: PostgresSession
    private let run: Int64
    /// The time by the caller's clock.
    private let now: Timestamp
    /// The time by the store's clock, once the leases are locked.
    private var moment: Timestamp
    private let table: DeliveryTable
    private let ledger: SilentLedger

    init(_ db: PostgresSession, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
        moment = now
        table = DeliveryTable(run: run)
        ledger = SilentLedger(db)
    }

    mutating func record(_ settlements: [Settlement]) throws -> DeliveryCounts {
        let (change, attempts, replaced) = try settle(settlements)
        return try RunRow.add(change, attempts, replacing: replaced, to: run, at: moment, db)
    }

    /// Settles everything but the run's counts, and returns their change.
    private mutating func settle(
        _ settlements: [Settlement]
    ) throws -> (change: DeliveryCounts, attempts: SettledAttempts, replaced: ReplacedDeliveries) {
        let leases = try openLeases(settlements)
        // Lock the stages before any row of a delivery, a device or the run, as every transaction does.
        if settlements.contains(where: { $0.stage != nil }) { try RunStages.lock(db, run: run) }
        let (open, late) = split(settlements, leases)
        let recorded = try recorded(open)
        var change = DeliveryCounts()
        var attempts = SettledAttempts()
        var outcomes = Outcomes(late: late)
        var staged: [(Settlement, PushEnvironment)] = []
        for settlement in open {
            guard recorded.contains(settlement.device) else {
                outcomes.late.append(settlement)
                continue
            }
            change.settle(settlement.verdict)
            attempts.count(settlement)
            guard let lease = leases[settlement.lease] else { continue }
            outcomes.add(settlement, of: lease)
            if settlement.stage != nil { staged.append((settlement, lease.environment)) }
        }
        try write(outcomes)
        if !staged.isEmpty { try StageController.of(run, at: moment, db)?.count(staged) }
        let gone = outcomes.gone.map(\.settlement).filter { $0.verdict == .rejected }.map(\.device)
        let replaced = try UserFallbacks(db, run: run, at: moment).replace(gone)
        change.reopen(replaced)
        return (change, attempts, replaced)
    }

    /// A lease whose outcomes are being recorded.
    private struct OpenLease {
        let hasUnproven: Bool
        let isSilent: Bool
        let isCapped: Bool
        let environment: PushEnvironment
    }

    /// The consequences of outcomes that count.
    private struct Outcomes {
        var settled: [Int64: Int] = [:]
        var closed: [(device: Int64, number: Int)] = []
        var released: [(device: Int64, number: Int)] = []
        var capped: [CapOutcome] = []
        var proofs = NewProofs()
        var gone: [(settlement: Settlement, since: Timestamp)] = []
        /// All outcomes that were recorded.
        var recorded: [Settlement] = []
        /// The outcomes of leases that have ended, or of deliveries that already have their outcome. Their push may
        /// have been sent after that.
        var late: [Settlement]

        init(late: [Settlement]) { self.late = late }

        mutating func add(_ settlement: Settlement, of lease: OpenLease) {
            settled[settlement.lease, default: 0] += 1
            recorded.append(settlement)
            let place = (settlement.device, settlement.leaseNumber)
            if lease.isSilent {
                if settlement.mayHaveReachedAPNs { closed.append(place) } else { released.append(place) }
            }
            if lease.isCapped { capped.append(CapOutcome(settlement)) }
            if lease.hasUnproven, settlement.verdict == .accepted {
                proofs.add(device: settlement.device, generation: settlement.generation)
            }
            if case .gone(let since) = settlement.effect { gone.append((settlement, since)) }
        }
    }

    private mutating func openLeases(_ settlements: [Settlement]) throws -> [Int64: OpenLease] {
        let ids = Array(Set(settlements.map(\.lease))).sorted()
        guard !ids.isEmpty else { return [:] }
        let rows = try db.rows(
            """
            WITH held AS MATERIALIZED (
                SELECT id, unproven, is_silent, is_capped, environment FROM lease WHERE run_id = $1 AND id = ANY ($2)
                ORDER BY id FOR NO KEY UPDATE
            )
            SELECT id, unproven, is_silent, \(StoreTime.now), environment, is_capped FROM held
            """, run, ids)
        var leases: [Int64: OpenLease] = [:]
        for row in rows {
            leases[try row.int64(0)] = OpenLease(
                hasUnproven: try row.int64(1) > 0, isSilent: try row.bool(2),
                isCapped: try row.bool(5), environment: PushEnvironment(code: try row.int64(4)))
        }
        if db.time == .database { moment = try rows.last.map { try $0.timestamp(3) } ?? db.moment(now) }
        return leases
    }

    /// Splits the outcomes into the first one of each delivery in an open lease, and all others.
    private func split(
        _ settlements: [Settlement], _ leases: [Int64: OpenLease]
    ) -> (open: [Settlement], late: [Settlement]) {
        var devices: Set<Int64> = []
        var (open, late): ([Settlement], [Settlement]) = ([], [])
        open.reserveCapacity(settlements.count)
        devices.reserveCapacity(settlements.count)
        for settlement in settlements {
            if leases[settlement.lease] != nil, devices.insert(settlement.device).inserted {
                open.append(settlement)
            } else {
                late.append(settlement)
            }
        }
        return (open, late)
    }

    /// Records the outcomes. Returns the devices whose delivery had no outcome of this lease so far.
    private func recorded(_ settlements: [Settlement]) throws -> Set<Int64> {
        var devices: Set<Int64> = []
        devices.reserveCapacity(settlements.count)
        let plain = settlements.filter(\.isPlainAcceptance)
        if !plain.isEmpty { devices.formUnion(try recordPlain(plain)) }
        if plain.count < settlements.count {
            devices.formUnion(try recordOthers(settlements.filter { !$0.isPlainAcceptance }))
        }
        return devices
    }

    private func recordPlain(_ settlements: [Settlement]) throws -> [Int64] {
        var count = 0
        var rest: [Settlement] = []
        for (_, part) in settlements.byLease {
            guard var range = AcceptedRange(part) else {
                rest += part
                continue
            }
            count += try record(range)
            for settlement in part where !range.take(settlement) { rest.append(settlement) }
        }
        if !rest.isEmpty { count += try recordAccepted(rest) }
        let devices = settlements.map(\.device)
        // The server would take as long to return the ids as for a tenth of the update.
        guard count < settlements.count else { return devices }
        return try db.all(
            """
            SELECT device_id FROM \(table.name)
            WHERE device_id = ANY ($1) AND state = \(DeliveryState.accepted.code) AND xmin = pg_current_xact_id()::xid
            """, devices
        ) { try $0.int64(0) }
    }

    private func record(_ range: AcceptedRange) throws -> Int {
        // A place outside the bytes would be an error, so CASE guarantees the order of the checks.
        try db.execute(
            """
            UPDATE \(table.name) SET
                state = \(DeliveryState.accepted.code), leases = $4, attempt = $5, generation = $6, not_before = NULL,
                status = \(Settlement.acceptedStatus), reason = NULL,
                locale_index = nullif(get_byte($3, (device_id - $1)::int) - 2, -1), changed_at = $7
            WHERE device_id BETWEEN $1 AND $2 AND state = \(DeliveryState.pending.code) AND leases = $4 - 1
                AND CASE WHEN device_id BETWEEN $1 AND $2
                    THEN get_byte($3, (device_id - $1)::int) > 0 ELSE false END
            """, range.first, range.last, range.codes, Int32(clamping: range.leaseNumber),
            Int32(clamping: range.attempt), Int64(range.generation), moment)
    }

    private func recordAccepted(_ settlements: [Settlement]) throws -> Int {
        try db.execute(
            """
            UPDATE \(table.name) SET
                state = \(DeliveryState.accepted.code), leases = given.number, attempt = given.attempt,
                generation = given.generation, not_before = NULL, status = \(Settlement.acceptedStatus), reason = NULL,
                locale_index = given.locale, changed_at = $6
            FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[])
                AS given (device, number, attempt, generation, locale)
            WHERE device_id = given.device AND state = \(DeliveryState.pending.code) AND leases = given.number - 1
            """, settlements.map(\.device), settlements.map { Int32(clamping: $0.leaseNumber) },
            settlements.map { Int32(clamping: $0.attempt) }, settlements.map { Int32(clamping: $0.generation) },
            settlements.map { $0.localeIndex.map { Int32(clamping: $0) } }, moment)
    }

    private func recordOthers(_ settlements: [Settlement]) throws -> [Int64] {
        let rows = settlements.map { SettledRow($0, now: now, moment: moment) }
        return try db.all(
            """
            UPDATE \(table.name) SET
                state = given.state, leases = given.number, attempt = given.attempt, doubts = doubts + given.doubt,
                excused = excused + given.excuse, generation = given.generation, not_before = given.not_before,
                locale_index = given.locale, status = given.status, reason = given.reason, changed_at = $11
            FROM unnest(
                $1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::bigint[], $9::int[],
                $10::text[], $12::int[])
                AS given (device, number, attempt, generation, locale, doubt, excuse, not_before, status, reason, state)
            WHERE device_id = given.device AND \(table.name).state = \(DeliveryState.pending.code)
                AND leases = given.number - 1
            RETURNING device_id
            """, settlements.map(\.device), settlements.map { Int32(clamping: $0.leaseNumber) },
            settlements.map { Int32(clamping: $0.attempt) }, settlements.map { Int32(clamping: $0.generation) },
            settlements.map { $0.localeIndex.map { Int32(clamping: $0) } },
            settlements.map { $0.isInDoubt ? Int32(1) : 0 }, settlements.map { $0.isExcused ? Int32(1) : 0 },
            rows.map(\.notBefore), settlements.map { Int32(clamping: $0.status) }, rows.map(\.reason), moment,
            rows.map(\.state)
        ) { try $0.int64(0) }
    }

    private func write(_ outcomes: Outcomes) throws {
        try end(outcomes.settled)
        let late = outcomes.late.filter(\.mayHaveReachedAPNs)
        try CapLedger(db).settle(outcomes.capped + late.map(CapOutcome.init), run: run, at: moment)
        try ledger.close(outcomes.closed + late.map { ($0.device, $0.leaseNumber) }, run: run, at: moment)
        try ledger.releaseSlots(outcomes.released, run: run)
        try BadgeCount(db, run: run).count(outcomes.recorded)
        try TokenProofs.record(outcomes.proofs, db)
        try FoundGone(db, run: run).note(outcomes.gone)
    }

    /// Subtracts the outcomes from their leases. A lease ends with its last outcome.
    private func end(_ settled: [Int64: Int]) throws {
        guard !settled.isEmpty else { return }
        let (leases, counts) = (Array(settled.keys), Array(settled.values))
        let ended = try db.execute(
            """
            DELETE FROM lease USING unnest($1::bigint[], $2::bigint[]) AS given (lease, settled)
            WHERE id = given.lease AND open <= given.settled
            """, leases, counts)
        guard ended < leases.count else { return }
        try db.execute(
            """
            UPDATE lease SET open = open - given.settled
            FROM unnest($1::bigint[], $2::bigint[]) AS given (lease, settled) WHERE id = given.lease
            """, leases, counts)
    }
}

/// The values that a verdict writes.
private struct SettledRow {
    let state: Int32
    let reason: String?
    let notBefore: Timestamp?

    /// - Parameters:
    ///   - now: the time by the clock that decides when a retry is due.
    ///   - moment: the time by the store's clock, by which the delivery waits.
    init(_ settlement: Settlement, now: Timestamp, moment: Timestamp) {
        let (state, reason, notBefore): (DeliveryState, String?, Timestamp?) =
            switch settlement.verdict {
            case .accepted: (.accepted, settlement.reason, nil)
            case .rejected: (.rejected, settlement.reason, nil)
            case .unknown: (.unknown, settlement.reason, nil)
            case .retry(let due): (.pending, settlement.reason, due + (moment - now))
            case .suppressed(let why): (.suppressed, why.rawValue, nil)
            }
        self.state = Int32(state.code)
        self.reason = reason
        self.notBefore = notBefore
    }
}
