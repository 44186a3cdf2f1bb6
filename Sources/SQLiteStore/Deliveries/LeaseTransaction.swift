import GRDB
import Model
import RelationalStore
import Store

/// One chunk of a lease. It reads up to `limit` pending deliveries, sets aside those that may not be sent, and records
/// the rest as in flight.
struct LeaseTransaction {
    private let db: Database
    private let request: LeaseRequest
    private let ledger: SilentLedger
    private let coalescing: Coalescing

    init(_ db: Database, _ request: LeaseRequest) throws {
        self.db = db
        self.request = request
        ledger = SilentLedger(db)
        coalescing = Coalescing(db, run: request.run, now: request.now)
    }

    /// Returns the lease, and whether no delivery is left to read for now.
    func takeLease() throws -> (lease: Lease, isExhausted: Bool) {
        try RunOwner.locked(db, request.run).require(request.owner)
        if let order = try StopRecord.order(db, run: request.run) {
            return (Lease(stoppedBy: order, after: request.after), true)
        }
        var request = request
        var paces = try SharedPaces(db, request)
        // Record all clock steps so far before checking a stage's hold.
        let steps = try ClockRecord(db).latestSteps(request.clocks, by: request.owner)
        if let wait = request.clockWait(after: steps) {
            return (Lease(id: 0, deliveries: [], cursor: request.after, paceWait: wait), true)
        }
        let stage = try permit()
        let (allowed, wait) = paces.allowed(request)
        if let wait { return (wait, true) }
        var takenMax = allowed
        request.after = max(request.after, try freshInFlight())
        let candidates = LeaseCandidates(db, request)
        var due = try candidates.due(limit: request.limit)
        var fresh: [LeaseCandidate] = []
        switch stage {
        case nil: break
        case .paused?: return (Lease(pausedAfter: request.after), true)
        case .open(let stage, let isLast, let most)?:
            takenMax = min(takenMax, most)
            due += try candidates.held(
                upTo: stage, limit: StageController.looked(isLast, taken: takenMax, limit: request.limit - due.count))
            guard takenMax > 0 else { return (Lease(id: 0, deliveries: [], cursor: request.after), true) }
            if due.isEmpty, !isLast { return try goOn() }
            if !isLast { request.limit = due.count }
        }
        fresh = try candidates.fresh(limit: request.limit - due.count)
        var isExhausted = due.count + fresh.count < request.limit
        let gap = request.caps == nil && request.silentBudget == nil ? nil : try BackupMarks.gap(db)
        var chunk = Chunk(LeasePolicy(request, after: steps, gap: gap), after: steps, capacity: due.count + fresh.count)
        let caps = try request.caps.map { asked in
            try CapLedger(db).open(asked, [due, fresh], run: request.run, at: request.now, after: steps, gap: gap)
        }
        // A pace limits the deliveries that are sent, not those that are found unsendable.
        for index in due.indices where chunk.taken.count < takenMax { try decide(due[index], &chunk, caps) }
        var looked = 0
        while looked < fresh.count, chunk.taken.count < takenMax {
            try decide(fresh[looked], &chunk, caps)
            looked += 1
        }
        if chunk.taken.count == takenMax { isExhausted = false }
        fresh.removeLast(fresh.count - looked)
        if !chunk.leftOut.isEmpty { try controller()?.leaveOut(chunk.leftOut) }
        if chunk.hasMovedAsked { try controller()?.recount() }
        if let caps { try CapLedger(db).write(caps.usage) }
        try db.assignVariant(to: &chunk.taken, request)
        let id = try record(chunk.taken, freshUntil: fresh.last?.delivery.device ?? 0)
        try paces.consume(chunk.taken.count)
        let replaced = try UserFallbacks(db, run: request.run, at: request.now).replace(chunk.gone)
        try count(leased: chunk.taken.count, suppressed: chunk.suppressed.values.reduce(0, +), replaced: replaced)
        if !chunk.taken.isEmpty {
            try CapLedger(db).note(request.run, isCapped: request.caps != nil, at: request.now)
            if let budget = request.silentBudget { try ledger.record(budget, run: request.run) }
        }
        try coalescing.countReplaced()
        let cursor = try cursor(behind: fresh, after: request.after, isExhausted: isExhausted)
        let lease = Lease(
            id: id, deliveries: chunk.taken, cursor: cursor, suppressions: chunk.suppressed, nextDue: try nextDue(),
            moved: chunk.moved + replaced.count)
        return (lease, isExhausted)
    }

    /// Returns what the run's stages permit, or `nil` if the run has no stages. For most of a run the last stage has
    /// begun, and one query then decides.
    private func permit() throws -> StagePermit? {
        if request.hasStages, let last = try SQLiteStages.lastBegun(db, run: request.run, of: request.stages) {
            return .open(stage: last, isLast: true, most: .max)
        }
        return try controller()?.permit()
    }

    /// Returns `nil` if the run has no stages.
    private func controller() throws -> StageController? {
        guard request.hasStages else { return nil }
        return try StageController.of(request.run, for: request.owner, at: request.now, db)
    }

    /// Moves the run's stages forward, and returns a lease without deliveries. Called when no delivery of the stages
    /// that have begun can be sent now.
    private func goOn() throws -> (lease: Lease, isExhausted: Bool) {
        let empty = Lease(id: 0, deliveries: [], cursor: request.after)
        return try controller()?.goOn().lease(empty) { try nextDue() } ?? (empty, false)
    }

    /// The decisions so far.
    private struct Chunk {
        var policy: LeasePolicy
        let steps: [ClockStep]
        var taken: [LeasedDelivery] = []
        var suppressed: [SuppressionReason: Int] = [:]
        /// The suppressed devices of early stages to which an earlier attempt was sent.
        var leftOut: [Int64] = []
        /// The devices of suppressed deliveries that are gone.
        var gone: [Int64] = []
        var moved = 0
        /// Whether a moved delivery of an early stage had an earlier attempt.
        var hasMovedAsked = false

        init(_ policy: LeasePolicy, after steps: [ClockStep], capacity: Int) {
            self.policy = policy
            self.steps = steps
            taken.reserveCapacity(capacity)
        }
    }

    /// Gets the policy's decision and records it.
    private func decide(_ candidate: LeaseCandidate, _ chunk: inout Chunk, _ caps: CapLease?) throws {
        let device = candidate.delivery.device
        let decision = try chunk.policy.decide(
            status: candidate.status, in: candidate.environment, zone: candidate.zone, wave: candidate.delivery.wave,
            silentEnds: { [steps = chunk.steps] in
                try ledger.ends(of: device, at: request.now, request.silentBudget, after: steps)
            },
            newerWaits: { try coalescing.newerWaits(device) },
            capped: { caps?.decide(candidate.delivery, user: candidate.user, expiresAt: $0) ?? .send(until: nil) })
        switch decision {
        case .send(let until):
            var delivery = candidate.delivery
            delivery.startBefore = until
            if request.silentBudget != nil { try ledger.reserve(delivery, run: request.run, at: request.now) }
            caps?.reserve(candidate.delivery, user: candidate.user)
            if candidate.isWaiting { try takeUpAgain(delivery.device) }
            delivery.badge += request.badgeIncrement
            chunk.taken.append(delivery)
        case .wait(let moment, let cause):
            try putOff(device, until: moment, for: cause)
            if cause == .silentBudget { try coalescing.replaceOlder(device) }
        case .suppress(let reason):
            try suppress(device, reason)
            chunk.suppressed[reason, default: 0] += 1
            if reason == .tokenGone { chunk.gone.append(device) }
            if candidate.delivery.stage != nil, candidate.delivery.attempt > 1 { chunk.leftOut.append(device) }
        case .move(let environment):
            try move(device, to: environment)
            chunk.moved += 1
            if candidate.delivery.stage != nil, candidate.delivery.attempt > 1 { chunk.hasMovedAsked = true }
        }
    }

    /// Returns the last fresh device in flight. Fresh deliveries are leased in order of device, so no fresh delivery
    /// in flight comes after it. A cursor that is too low, such as that of a new sender, therefore leases nothing
    /// twice.
    private func freshInFlight() throws -> Int64 {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT coalesce(max(fresh_until), 0) FROM lease WHERE run_id = :run AND environment = :environment
                    """),
            arguments: ["run": request.run, "environment": request.environment.code]) ?? 0
    }

    private func record(_ taken: [LeasedDelivery], freshUntil: Int64) throws -> Int64 {
        guard !taken.isEmpty else { return 0 }
        let entries = taken.map { LeaseEntry(device: $0.device, number: $0.leaseNumber, generation: $0.generation) }
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO lease (
                run_id, owner, leased_at, environment, open, unproven, is_silent, is_capped, fresh_until, entries
            ) VALUES (:run, :owner, :now, :environment, :open, :unproven, :silent, :capped, :fresh_until, :entries)
            """)
        try insertion.bind(request.run, insertion.parameter(":run"))
        try insertion.bind(request.owner, insertion.parameter(":owner"))
        try insertion.bind(request.now.milliseconds, insertion.parameter(":now"))
        try insertion.bind(request.environment.code, insertion.parameter(":environment"))
        try insertion.bind(Int64(taken.count), insertion.parameter(":open"))
        try insertion.bind(Int64(taken.count { !$0.isProven }), insertion.parameter(":unproven"))
        try insertion.bind(request.silentBudget == nil ? 0 : Int64(1), insertion.parameter(":silent"))
        try insertion.bind(request.caps == nil ? 0 : Int64(1), insertion.parameter(":capped"))
        try insertion.bind(freshUntil, insertion.parameter(":fresh_until"))
        try insertion.bind(LeaseEntry.pack(entries), insertion.parameter(":entries"))
        try insertion.run()
        return db.lastInsertedRowID
    }

    /// - Parameter replaced: the deliveries to other devices of users whose device is gone.
    private func count(leased: Int, suppressed: Int, replaced: ReplacedDeliveries) throws {
        guard leased + suppressed > 0 else { return }
        var change = DeliveryCounts()
        change.pending = -leased - suppressed
        change.leased = leased
        change.suppressed = suppressed
        change.reopen(replaced)
        try RunRow.add(change, replacing: replaced, to: request.run, at: request.now, db)
    }

    /// Puts a delivery off. `reason` says what the delivery waits for, and `held_for` keeps that after the wait.
    private func putOff(_ device: Int64, until moment: Timestamp, for cause: SuppressionReason?) throws {
        let update = try RowStatement(
            db,
            """
            UPDATE delivery SET
                not_before = :until, reason = :reason, held_for = :reason,
                held_until = CASE WHEN :reason IS NULL THEN NULL ELSE :until END
            WHERE run_id = :run AND device_id = :device
            """)
        try update.bind(moment.milliseconds, update.parameter(":until"))
        try update.bind(cause?.rawValue, update.parameter(":reason"))
        try update.bind(request.run, update.parameter(":run"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }

    /// Moves a delivery to another environment and makes it due now, because that environment's cursor may already
    /// be past the device.
    private func move(_ device: Int64, to environment: PushEnvironment) throws {
        let update = try RowStatement(
            db,
            """
            UPDATE delivery SET environment = :environment, not_before = :now
            WHERE run_id = :run AND device_id = :device
            """)
        try update.bind(environment.code, update.parameter(":environment"))
        try update.bind(request.now.milliseconds, update.parameter(":now"))
        try update.bind(request.run, update.parameter(":run"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }

    /// Marks a waiting delivery as in flight, so that no query for due deliveries finds it.
    private func takeUpAgain(_ device: Int64) throws {
        let update = try RowStatement(
            db, "UPDATE delivery SET not_before = :in_flight WHERE run_id = :run AND device_id = :device")
        try update.bind(NotBefore.inFlight, update.parameter(":in_flight"))
        try update.bind(request.run, update.parameter(":run"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }

    private static let suppressSQL = """
        UPDATE delivery SET
            state = \(DeliveryState.suppressed.rawValue), status = 0, reason = :reason, not_before = NULL, changed_at = :now
        WHERE run_id = :run AND device_id = :device
        """

    private func suppress(_ device: Int64, _ reason: SuppressionReason) throws {
        let update = try RowStatement(db, Self.suppressSQL)
        try update.bind(reason.rawValue, update.parameter(":reason"))
        try update.bind(request.now.milliseconds, update.parameter(":now"))
        try update.bind(request.run, update.parameter(":run"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }

    /// Returns the next cursor. If no fresh delivery is left, the cursor moves to the last frozen delivery of any
    /// environment and state, so that the next call does not read them again. The freeze adds deliveries only after
    /// that one.
    private func cursor(behind fresh: [LeaseCandidate], after: Int64, isExhausted: Bool) throws -> Int64 {
        guard isExhausted else { return fresh.last?.delivery.device ?? after }
        let last = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT max(device_id) FROM delivery WHERE run_id = :run"),
            arguments: ["run": request.run])
        return max(last ?? 0, after)
    }

    private static let nextDueSQL = """
        SELECT not_before FROM delivery INDEXED BY delivery_waiting
        WHERE run_id = :run AND environment = :environment AND state = \(DeliveryState.pending.rawValue)
            AND not_before IS NOT NULL
        ORDER BY not_before LIMIT 1
        """

    private func nextDue() throws -> Timestamp? {
        let first = try Int64.fetchOne(
            db.cachedStatement(
                sql: Self.nextDueSQL),
            arguments: ["run": request.run, "environment": request.environment.code])
        return NotBefore.moment(first)
    }
}
