import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        let counts = try await freezeTurns.take("run \(run)", waitingAtMost: FreezeDelayed.waitMax) {
            try await writeDown(run, by: owner, now: now, onBatch: onBatch)
        }
        guard let counts else { throw FreezeDelayed(atOnceMax: StoreLimits.freezesMax) }
        return counts
    }

    /// With a turn, so that a connection is free.
    private func writeDown(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        try await freezeConnections.read { [self] db in
            let frozen = try RunRow.require(db, run)
            guard !frozen.isFrozen else { return frozen.counts }
            return try AudienceSelection.with(frozen.definition, now: now, db) { selection in
                if let grown = try Self.grown(frozen, selection, db) {
                    try transaction(.ofSenders) { try grown.pause($0, owner: owner, now: now) }
                    throw grown
                }
                var source = try FreezeSource(db, frozen, selection)
                defer { source.close() }
                while true {
                    let batch = try source.nextBatch()
                    let counts = try transaction(.ofSenders) { writer in
                        // Two freezes side by side would each write what the other has written.
                        try RunOwner.locked(writer, run).require(owner)
                        return try FreezeBatch(writer, run: run, now: now).insert(batch, isLast: source.isAtEnd)
                    }
                    if !batch.entries.isEmpty { onBatch(FrozenBatch(batch.entries.lazy.map(\.decision))) }
                    if source.isAtEnd { return counts }
                }
            }
        }
    }

    /// In the snapshot that is written down. Nil: it has not grown beyond what was seen, or nobody counted it.
    private static func grown(
        _ run: Run, _ selection: AudienceSelection, _ db: Database
    ) throws -> GrownRun? {
        guard let limits = try ReachLimits.of(run.id, db) else { return nil }
        if limits.segments != nil,
            let changed = limits.halt(run.id, segments: try SegmentContents(of: run.definition.campaign, db))
        {
            return changed
        }
        guard limits.isBounded else { return nil }
        var source = try FreezeSource(db, run, selection)
        defer { source.close() }
        var reach = run.counts.audience - run.counts.suppressed
        while !source.isAtEnd { reach += try source.nextBatch().entries.count { $0.decision.suppression == nil } }
        return limits.halt(run.id, at: reach)
    }

    /// `synchronous` FULL: costs one sync of the log per chunk.
    package func lease(_ request: LeaseRequest) async throws -> Lease {
        var request = request
        let limit = max(1, request.limit)
        var suppressions: [SuppressionReason: Int] = [:]
        var moved = 0
        var turn = LeaseTurn()
        request.limit = limit
        while true {
            let asked = request
            let (lease, isExhausted) = try await writeDurably(patience: .ofSenders) { db in
                try LeaseTransaction(db, asked).take()
            }
            suppressions.merge(lease.suppressions, uniquingKeysWith: +)
            moved += lease.moved
            let isOpen = lease.deliveries.isEmpty && !isExhausted
            guard turn.mayContinue(afterLooking: asked.limit), isOpen, !Task.isCancelled else {
                var lease = lease
                lease.suppressions = suppressions
                lease.moved = moved
                lease.isCutShort = isOpen
                return lease
            }
            request.after = lease.cursor
            request.limit = turn.limit(limit)
        }
    }

    package func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        try await writeSending { db in
            let batch = try SettlementBatch(db, run: run, now: now)
            return try batch.record(settlements)
        }
    }

    package func recover(
        _ run: Int64, heldBy owner: String, _ leases: [LeftLease], _ settlements: [Settlement], now: Timestamp
    ) async throws -> DeliveryCounts {
        try await write { db in
            try RunOwner.locked(db, run).require(owner)
            return try LeaseRecovery(db, run, now: now).end(leases, settlements)
        }
    }

    package func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int {
        var (sum, device) = (0, Int64?.some(0))
        while let after = device {
            let (count, last) = try await write { db in
                try Mismatched(db, run: run).suspendSlice(environment, after: after, now: now)
            }
            sum += count
            device = last
        }
        return sum
    }

    package func markGone(run: Int64, now: Timestamp) async throws -> Int {
        var (sum, device) = (0, Int64?.some(0))
        while let after = device {
            let (count, last) = try await write { db in try FoundGone(db, run: run).markSlice(after: after) }
            sum += count
            device = last
        }
        return sum
    }

    package func goneBefore(run: Int64) async throws -> [(gone: Int, answered: Int)] {
        try await read { db in
            let record = try RunRow.require(db, run)
            return try RunStages(db, record, actor: Actor(record.owner ?? "")).goneBefore()
        }
    }

    package func mismatchCounts(run: Int64) async throws -> [MismatchCount] {
        try await read { db in try Mismatched(db, run: run).counts() }
    }

    package func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int {
        var (sum, device) = (0, Int64?.some(0))
        while let after = device {
            let (count, last) = try await writeSending { db in
                try RunOwner.locked(db, run).require(owner)
                return try Mismatched(db, run: run).reopenSlice(environment, after: after, now: now)
            }
            sum += count
            device = last
        }
        return sum
    }
}

/// The deliveries of a run that APNs found ``TokenVerdict/mismatched``.
private struct Mismatched {
    private let db: Database
    private let run: Int64
    /// As a list for `json_each`.
    private let reasons = StoredJSON.array(TokenVerdict.mismatched.reasons)

    init(_ db: Database, run: Int64) {
        self.db = db
        self.run = run
    }

    func counts() throws -> [MismatchCount] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT environment, count(*), count(*) FILTER (WHERE reason IN (SELECT value FROM json_each(:reasons))),
                    count(*) FILTER (WHERE reason IN (SELECT value FROM json_each(:gone)))
                FROM delivery WHERE run_id = :run AND state IN (\(SQLConstants.list([.accepted, .rejected])))
                GROUP BY environment
                """,
            arguments: ["run": run, "reasons": reasons, "gone": StoredJSON.array(TokenVerdict.gone.reasons)]
        ).map { MismatchCount(environment: PushEnvironment(code: $0[0]), all: $0[1], wrong: $0[2], gone: $0[3]) }
    }

    /// How many, and the last device looked at; nil at the end.
    func suspendSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.end(db, run: run, after: device) else { return (0, nil) }
        let suspects = try suspects(environment, after: device, upTo: last)
        let status = try DeviceStatusStatement(db)
        for suspect in suspects { try status.write(suspect.device, .suspended, reason: suspect.reason, at: now) }
        try db.execute(
            sql: "UPDATE run SET devices_suspended = devices_suspended + :count WHERE id = :run",
            arguments: ["run": run, "count": suspects.count])
        return (suspects.count, last)
    }

    /// Active devices for which the verdict holds.
    private func suspects(
        _ environment: PushEnvironment, after device: Int64, upTo last: Int64
    ) throws -> [(device: Int64, reason: String)] {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT device.id, delivery.reason, delivery.generation, delivery.changed_at, device.token_generation,
                    device.registered_at, token_heard.heard_at, device.last_seen_at
                FROM delivery JOIN device ON device.id = delivery.device_id
                    LEFT JOIN token_heard ON token_heard.device_id = device.id
                WHERE delivery.run_id = :run AND delivery.device_id > :after AND delivery.device_id <= :last
                    AND delivery.environment = :environment AND delivery.state = \(DeliveryState.rejected.rawValue)
                    -- A device of another environment now says nothing about its token.
                    AND device.environment = delivery.environment AND delivery.reason IN (SELECT value FROM json_each(:reasons))
                    AND device.status = \(DeviceStatus.active.code)
                """,
            arguments: [
                "run": run, "environment": environment.code, "reasons": reasons, "after": device, "last": last,
            ])
        var suspects: [(device: Int64, reason: String)] = []
        while let row = try rows.next() {
            let holds = TokenVerdict.holds(
                generation: row[2], at: Timestamp(milliseconds: row[3]),
                for: TokenRegistration(
                    generation: row[4], registeredAt: Timestamp(stored: row[5]), heardAt: Timestamp(stored: row[6]),
                    lastSeenAt: Timestamp(stored: row[7])))
            if holds { suspects.append((row[0], row[1])) }
        }
        return suspects
    }

    /// How many, and the last device looked at; nil at the end.
    func reopenSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.end(db, run: run, after: device) else { return (0, nil) }
        try db.execute(
            sql: """
                UPDATE delivery SET
                    state = \(DeliveryState.pending.rawValue), changed_at = :now,
                    -- Of an early stage nothing is ever fresh.
                    not_before = CASE WHEN stage IS NULL THEN NULL ELSE :now END
                WHERE run_id = :run AND device_id > :after AND device_id <= :last AND environment = :environment
                    AND state = \(DeliveryState.rejected.rawValue) AND reason IN (SELECT value FROM json_each(:reasons))
                """,
            arguments: [
                "run": run, "environment": environment.code, "now": now.milliseconds, "reasons": reasons,
                "after": device, "last": last,
            ])
        var change = DeliveryCounts()
        change.rejected = -db.changesCount
        change.pending = db.changesCount
        try RunRow.add(change, to: run, at: now, db)
        if change.pending > 0 {
            let record = try RunRow.require(db, run)
            let book = RunStages(db, record, actor: Actor(record.owner ?? ""))
            try StageGate(record, book, at: now)?.recount()
            try OutcomeSummary(db, run).drop()
        }
        return (change.pending, last)
    }
}

extension GrownRun {
    fileprivate func pause(_ db: Database, owner: String, now: Timestamp) throws {
        try RunOwner.locked(db, run).require(owner)
        try db.execute(sql: "UPDATE run SET reach = :reach WHERE id = :run", arguments: ["run": run, "reach": reach])
        try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: Actor(owner), halt: halt)
    }
}
