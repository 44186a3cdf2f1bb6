import Model
import RelationalStore
import Store

/// One chunk of a lease. It reads up to `limit` pending deliveries, sets aside those that may not be sent, and
/// records the rest as in flight.
///
/// Decisions are collected, and a few statements write all of them. Every transaction locks rows in this order:
///
/// - the sender's right to the run
/// - paces
/// - waiting deliveries
/// - the run's stages
/// - chunks
/// - the devices' slots, or the rows of their caps
/// - deliveries of other runs
/// - the counts of runs, in order of run
struct LeaseTransaction {
    /// The time after which deliveries that other senders had locked are checked again.
    private static let othersLookedAfter: Duration = .seconds(1)

    private let db: PostgresSession
    /// The request. Its time is the caller's until the store's time is known.
    private var request: LeaseRequest
    private let call: Int64
    private let bound: DueBound
    /// The index position of the first due delivery; `nil` if there was none.
    private(set) var firstDue: DueBound?
    private let table: DeliveryTable

    /// - Parameters:
    ///   - call: a number that no other lease has.
    ///   - bound: the index position at which the due deliveries begin.
    init(_ db: PostgresSession, _ request: LeaseRequest, call: Int64, from bound: DueBound = .start) {
        self.bound = bound
        self.db = db
        self.request = request
        self.call = call
        table = DeliveryTable(run: request.run)
    }

    /// Returns the lease, and whether no delivery is left to read for now.
    mutating func takeLease() throws -> (lease: Lease, isExhausted: Bool) {
        let asked = request.now
        try Schema.requireKnown(db)
        try RunOwner.require(request.owner, of: request.run, db)
        if let order = try StopRecord.order(db, run: request.run) {
            return (Lease(stoppedBy: order, after: request.after), true)
        }
        var paces = try SharedPaces(db, request)
        let (allowed, wait) = paces.allowed(request)
        if let wait { return (wait, true) }
        var takenMax = allowed
        let candidates = LeaseCandidates(db, request)
        let found = try candidates.due(limit: request.limit, from: bound)
        var due = found.candidates
        (request.now, firstDue) = (found.moment, found.first)
        // Record all clock steps so far before checking a stage's hold.
        let steps = try ClockRecord(db).latestSteps(request.clocks, by: request.owner)
        if let wait = request.clockWait(after: steps) {
            return (
                Lease(
                    id: 0, deliveries: [], cursor: request.after, storeAhead: request.now - asked, paceWait: wait), true
            )
        }
        // Lock the stages before any slot or cap row, as every transaction does. Held deliveries, added below, were
        // never sent.
        let mayLeaveOut = due.contains { $0.delivery.stage != nil && $0.delivery.attempt > 1 }
        switch try controller(isWriting: mayLeaveOut)?.permit() {
        case nil: break
        case .paused?: return (Lease(pausedAfter: request.after), true)
        case .open(let stage, let isLast, let most)?:
            takenMax = min(takenMax, most)
            due += try candidates.held(
                upTo: stage, limit: StageController.looked(isLast, taken: takenMax, limit: request.limit - due.count))
            guard takenMax > 0 else { return (Lease(id: 0, deliveries: [], cursor: request.after), true) }
            if due.isEmpty, !isLast { return try goOn(asked: asked) }
            if !isLast { request.limit = due.count }
        }
        var (fresh, chunks) = try candidates.fresh(limit: request.limit - due.count)
        var isExhausted = due.count + fresh.count < request.limit
        var decisions = try decisions(due, fresh, takenMax: takenMax, steps)
        if decisions.taken.count == takenMax { isExhausted = false }
        if decisions.freshLeft.first != nil {
            let first = decisions.freshLeft[0].delivery.device
            chunks = chunks.map { $0.cut(before: first) }
            fresh = fresh.filter { $0.delivery.device < first }
        }
        try write(chunks)
        try db.assignVariant(to: &decisions.taken, request)
        try write(decisions)
        if !decisions.leftOut.isEmpty { try controller(isWriting: true)?.leaveOut(decisions.leftOut) }
        if decisions.hasMovedAsked { try controller(isWriting: true)?.recount() }
        let id = try record(decisions.taken)
        try paces.consume(decisions.taken.count)
        let replaced = try UserFallbacks(db, run: request.run, at: request.now).replace(decisions.gone)
        try count(decisions, replaced: replaced)
        if !decisions.taken.isEmpty {
            try CapLedger(db).note(request.run, isCapped: request.caps != nil, at: request.now)
        }
        let lease = Lease(
            id: id, deliveries: decisions.taken, cursor: fresh.last?.delivery.device ?? request.after,
            suppressions: decisions.suppressions, nextDue: try nextDue(), storeAhead: request.now - asked,
            moved: decisions.moved.count + replaced.count)
        return (lease, isExhausted)
    }

    /// Returns `nil` if the run has no stages.
    ///
    /// - Parameter isWriting: whether the lease may add responses to stages, even if the last stage has begun.
    private func controller(isWriting: Bool) throws -> StageController? {
        guard request.hasStages else { return nil }
        if isWriting {
            try RunStages.lock(db, run: request.run)
        } else {
            try RunStages.lockUnlessOver(db, run: request.run)
        }
        return try StageController.of(request.run, for: request.owner, at: request.now, db)
    }

    /// Moves the run's stages forward, and returns a lease without deliveries. Called when no delivery of the stages
    /// that have begun can be sent now.
    private func goOn(asked: Timestamp) throws -> (lease: Lease, isExhausted: Bool) {
        let empty = Lease(id: 0, deliveries: [], cursor: request.after, storeAhead: request.now - asked)
        return try controller(isWriting: false)?.goOn().lease(empty) { try nextDue() } ?? (empty, false)
    }

    private mutating func decisions(
        _ due: [LeaseCandidate], _ fresh: [LeaseCandidate], takenMax: Int, _ steps: [ClockStep]
    ) throws -> LeaseDecisions {
        let devices = (due + fresh).map(\.delivery.device)
        var standing: SilentLedger.Standing?
        let hasLimits = request.silentBudget != nil || request.caps != nil
        let gap: RestoreGap? = hasLimits ? try StoredFact.value(RestoreGap.key, db) : nil
        if let budget = request.silentBudget, !devices.isEmpty {
            let found = try SilentLedger(db).standing(of: devices, at: request.now, budget, after: steps)
            request.now = found.moment
            standing = found
        }
        let caps = try request.caps.map { asked in
            try CapLedger(db).open(asked, due + fresh, run: request.run, at: request.now, after: steps, gap: gap)
        }
        if let caps { request.now = caps.now }
        let lost = caps == nil ? [] : try CapLedger(db).lost(devices)
        let coalescing = Coalescing(db, run: request.run, candidates: devices, now: request.now)
        var policy = LeasePolicy(request, after: steps, gap: gap)
        var decisions = LeaseDecisions(standing: standing)
        // A pace limits the deliveries that are sent, not those that turn out to be unsendable.
        for (candidate, isFresh) in due.map({ ($0, false) }) + fresh.map({ ($0, true) }) {
            guard decisions.taken.count < takenMax else {
                if isFresh { decisions.freshLeft.append(candidate) }
                continue
            }
            let device = candidate.delivery.device
            let decision = try policy.decide(
                status: standing?.isStored(device) ?? !lost.contains(device) ? candidate.status : nil,
                in: candidate.environment, zone: candidate.zone,
                wave: candidate.delivery.wave, silentEnds: { standing?.ends[device] ?? [] },
                newerWaits: { try coalescing.newerWaits(device) },
                capped: { caps?.decide(candidate.delivery, user: candidate.user, expiresAt: $0) ?? .send(until: nil) })
            if case .send = decision { caps?.reserve(candidate.delivery, user: candidate.user) }
            decisions.add(decision, for: candidate)
        }
        if let caps { try CapLedger(db).write(caps.usage) }
        decisions.replaced = try coalescing.replaceOlder(
            decisions.putOff.filter { $0.cause == .silentBudget }.map(\.device))
        return decisions
    }

    private func write(_ chunks: [FreshChunk]) throws {
        guard !chunks.isEmpty else { return }
        try db.execute(
            """
            DELETE FROM chunk WHERE run_id = $1 AND environment = $2 AND last_device = ANY ($3)
            """, request.run, request.environment.code, chunks.filter { $0.next > $0.last }.map(\.last))
        let begun = chunks.filter { $0.next <= $0.last && $0.next > $0.first }
        guard !begun.isEmpty else { return }
        try db.execute(
            """
            UPDATE chunk SET next_device = given.next
            FROM unnest($3::bigint[], $4::bigint[]) AS given (last, next)
            WHERE run_id = $1 AND environment = $2 AND last_device = given.last
            """, request.run, request.environment.code, begun.map(\.last), begun.map(\.next))
    }

    private func write(_ decisions: LeaseDecisions) throws {
        if let standing = decisions.standing {
            try SilentLedger(db).reserve(decisions.taken, run: request.run, at: request.now, standing)
        }
        // Remove these from the index of waiting deliveries.
        if !decisions.takenUpAgain.isEmpty {
            try db.execute(
                "UPDATE \(table.name) SET not_before = \(NotBefore.inFlight) WHERE device_id = ANY ($1)",
                decisions.takenUpAgain)
        }
        // `reason` says what a delivery waits for. `held_for` and `held_until` keep that after the wait.
        if !decisions.putOff.isEmpty {
            try db.execute(
                """
                UPDATE \(table.name) SET
                    not_before = given.until, reason = given.cause, held_for = given.cause,
                    held_until = CASE WHEN given.cause IS NULL THEN NULL ELSE given.until END
                FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS given (device, until, cause)
                WHERE device_id = given.device
                """, decisions.putOff.map(\.device), decisions.putOff.map(\.until),
                decisions.putOff.map { $0.cause?.rawValue })
        }
        // Moved deliveries become due in the other environment, because its chunks may already be past them.
        if !decisions.moved.isEmpty {
            try db.execute(
                """
                UPDATE \(table.name) SET environment = given.environment, not_before = $3
                FROM unnest($1::bigint[], $2::int[]) AS given (device, environment)
                WHERE device_id = given.device
                """, decisions.moved.map(\.device), decisions.moved.map { Int32($0.environment.code) }, request.now)
        }
        if !decisions.suppressed.isEmpty {
            try db.execute(
                """
                UPDATE \(table.name) SET
                    state = \(DeliveryState.suppressed.code), status = 0, reason = given.reason, not_before = NULL,
                    changed_at = $3
                FROM unnest($1::bigint[], $2::text[]) AS given (device, reason)
                WHERE device_id = given.device
                """, decisions.suppressed.map(\.device), decisions.suppressed.map(\.reason.rawValue), request.now)
        }
    }

    /// Returns the id of the lease. It is random: the sequence of a standby that is promoted may be behind, and would
    /// give the ids of leases again whose outcomes are still to come.
    private func record(_ taken: [LeasedDelivery]) throws -> Int64 {
        guard !taken.isEmpty else { return 0 }
        let id = Int64.random(in: 1...Int64.max)
        let entries = taken.map { LeaseEntry(device: $0.device, number: $0.leaseNumber, generation: $0.generation) }
        try db.execute(
            """
            INSERT INTO lease
                (run_id, owner, leased_at, environment, open, unproven, is_silent, entries, call_id, is_capped, id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            """, request.run, request.owner, request.now, request.environment.code, taken.count,
            taken.count { !$0.isProven }, request.silentBudget != nil, LeaseEntry.pack(entries), call,
            request.caps != nil, id)
        return id
    }

    /// Updates the counts of this run, and of the runs that lost deliveries to it.
    ///
    /// - Parameter replaced: the deliveries to other devices of users whose device is gone.
    private func count(_ decisions: LeaseDecisions, replaced: ReplacedDeliveries) throws {
        var changes = decisions.replaced.mapValues { count in
            var change = DeliveryCounts()
            change.pending = -count
            change.suppressed = count
            return change
        }
        if decisions.taken.count + decisions.suppressed.count > 0 {
            var change = DeliveryCounts()
            change.pending = -decisions.taken.count - decisions.suppressed.count
            change.leased = decisions.taken.count
            change.suppressed = decisions.suppressed.count
            change.reopen(replaced)
            changes[request.run] = change
        }
        for (run, change) in changes.sorted(by: { $0.key < $1.key }) {
            try RunRow.add(
                change, replacing: run == request.run ? replaced : .none, to: run, at: request.now, db)
        }
    }

    /// Returns when the next delivery is due. Deliveries that other senders have locked belong to them. If such a
    /// sender does not lease them, this sender checks them again after ``othersLookedAfter``.
    private func nextDue() throws -> Timestamp? {
        let waiting = """
            FROM \(table.name)
            WHERE environment = $1 AND state = \(DeliveryState.pending.code) AND not_before < \(NotBefore.heldFrom)
                AND (not_before, device_id) >= ($2, $3)
            """
        let row = try db.rows(
            """
            WITH free AS MATERIALIZED (
                SELECT not_before \(waiting) ORDER BY not_before, device_id LIMIT 1 FOR SHARE SKIP LOCKED
            )
            SELECT (SELECT not_before FROM free),
                (SELECT not_before \(waiting) ORDER BY not_before, device_id LIMIT 1)
            """, request.environment.code, bound.notBefore, bound.device
        ).first
        guard let row, let first = try row.timestampOrNil(1) else { return nil }
        let free = try row.timestampOrNil(0)
        guard free != first else { return first }
        let next = max(first, request.now + Self.othersLookedAfter)
        return free.map { min($0, next) } ?? next
    }
}

/// The decisions of one lease, to be written together.
struct LeaseDecisions {
    /// The silent budget of the devices; only for background pushes.
    var standing: SilentLedger.Standing?
    var taken: [LeasedDelivery] = []
    /// The taken deliveries that were waiting before.
    var takenUpAgain: [Int64] = []
    var putOff: [(device: Int64, until: Timestamp, cause: SuppressionReason?)] = []
    var suppressed: [(device: Int64, reason: SuppressionReason)] = []
    /// The suppressed devices of early stages to which an earlier attempt was sent.
    var leftOut: [Int64] = []
    var moved: [(device: Int64, environment: PushEnvironment)] = []
    /// Whether a moved delivery of an early stage had an earlier attempt.
    var hasMovedAsked = false
    /// Fresh deliveries that were not examined, and stay fresh.
    var freshLeft: [LeaseCandidate] = []
    /// The number of replaced deliveries of older runs, by run.
    var replaced: [Int64: Int] = [:]

    /// The devices among the suppressed deliveries that are gone.
    var gone: [Int64] { suppressed.filter { $0.reason == .tokenGone }.map(\.device) }

    var suppressions: [SuppressionReason: Int] {
        suppressed.reduce(into: [:]) { $0[$1.reason, default: 0] += 1 }
    }

    mutating func add(_ decision: LeaseDecision, for candidate: LeaseCandidate) {
        let device = candidate.delivery.device
        switch decision {
        case .send(let until):
            var delivery = candidate.delivery
            delivery.startBefore = until
            if candidate.isWaiting { takenUpAgain.append(device) }
            taken.append(delivery)
        case .wait(let moment, let cause): putOff.append((device, moment, cause))
        case .suppress(let reason):
            suppressed.append((device, reason))
            if candidate.delivery.stage != nil, candidate.delivery.attempt > 1 { leftOut.append(device) }
        case .move(let environment):
            moved.append((device, environment))
            if candidate.delivery.stage != nil, candidate.delivery.attempt > 1 { hasMovedAsked = true }
        }
    }
}
