import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim {
        let isAlive = isAlive
        // Counting ten million deliveries takes seconds: not while nobody else can write.
        let owed = try await read { db in try OwedDeliveries(db, run, at: now) }
        let answer: RunClaim? = try await write { db in
            let lock = try RunLock(db, run)
            if let holder = lock.holder(apartFrom: owner.name, isAlive: isAlive) {
                return .held(by: holder, heartbeat: lock.heartbeat ?? now)
            }
            guard !lock.state.isFinal else { return nil }
            if let refusal = try ClaimRefusal(db, run, owed).find(for: owner, at: now) { return refusal }
            try lock.take(db, by: owner, now: now)
            return .claimed
        }
        guard let answer else {
            // Its owner died before it could end the run; the end is kept, although the claim fails.
            try await endIfCancelled(run, now: now)
            let state = try await self.run(run)?.state ?? .cancelled
            throw StoreError.runIsOver(run: run, state: state)
        }
        return answer
    }

    package func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState {
        try await writeSending { db in
            let lock = try RunLock(db, run)
            try lock.require(owner)
            try RunLock.heard(db, run, at: now)
            return lock.state
        }
    }

    package func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, halt: RunHalt?, now: Timestamp
    ) async throws {
        try await suppressRest(of: run, now: now)
        try await writeDurably(patience: .ofSenders) { db in
            let lock = try RunLock(db, run)
            try lock.require(owner.name)
            // A person's request to cancel is stronger than what the owner believes.
            let state = lock.state == .cancelled ? .cancelled : state
            if lock.state == .cancelled {
                // Who cancelled it is on record.
                try RunEnding(db, run, now: now).finishCancelled()
            } else if state != .running {
                if state != lock.state, !RunTransition(from: lock.state, to: state).isAllowed {
                    throw StoreError.illegalChange(run: run, from: lock.state, to: state)
                }
                // A pause somebody asked for keeps their reason, and waits for them.
                if state != .paused || lock.state != .paused || reason != nil {
                    try RunEnding(db, run, now: now).enter(
                        state, reason: reason, actor: owner, pausedBy: lock.pausedBy, halt: halt)
                }
            }
            try RunLock.heard(db, run, at: now)
            try RunLock.open(db, run)
        }
    }

    package func halt(
        _ run: Int64, by owner: Actor, _ halt: RunHalt, reason: String, now: Timestamp
    ) async throws {
        try await writeDurably(patience: .ofSenders) { db in
            let lock = try RunLock(db, run)
            try lock.require(owner.name)
            guard lock.state == .running else { return }
            try RunEnding(db, run, now: now).note(.paused, reason: reason, actor: owner, halt: halt)
        }
    }

    package func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor
    ) async throws {
        let isAlive = isAlive
        let isToBeEnded = try await writeDurably { db in
            let lock = try RunLock(db, run)
            let isPausedByItself = lock.state == .paused && lock.pausedBy == nil
            let holder = lock.holder(apartFrom: nil, isAlive: isAlive)
            switch RunTransition(from: lock.state, to: state).request(isPausedByItself: isPausedByItself) {
            case .nothingToDo where state != .running || holder != nil: return false
            case .refused: throw StoreError.illegalChange(run: run, from: lock.state, to: state)
            // Of a run that is to go on and that nobody has, it is put on record who said so, and when.
            case .nothingToDo, .carriedOut: break
            }
            // It is on record already, by whom and why; what an owner that died has left of it is ended.
            if lock.state == .cancelled, state == .cancelled { return holder == nil }
            let ending = RunEnding(db, run, now: now)
            let pausedBy = state == .paused ? actor.name : nil
            if state == .running { try RunLock.heard(db, run, at: now) }
            if holder != nil || state == .cancelled {
                try ending.note(state, reason: reason, actor: actor, pausedBy: pausedBy)
            } else {
                try ending.enter(state, reason: reason, actor: actor, pausedBy: pausedBy)
                if state.isFinal { try RunLock.open(db, run) }
            }
            return holder == nil && state == .cancelled
        }
        if isToBeEnded { try await endIfCancelled(run, now: now) }
    }

    /// Ends a cancelled run that nobody has, a slice at a time; what a process that ends meanwhile leaves is taken up by
    /// the next.
    private func endIfCancelled(_ run: Int64, now: Timestamp) async throws {
        try await suppressRest(of: run, now: now)
        let isAlive = isAlive
        try await writeDurably { db in
            let lock = try RunLock(db, run)
            guard lock.state == .cancelled, lock.holder(apartFrom: nil, isAlive: isAlive) == nil else { return }
            try RunEnding(db, run, now: now).finishCancelled()
        }
    }

    /// Of a run that is not cancelled: nothing.
    private func suppressRest(of run: Int64, now: Timestamp) async throws {
        var device: Int64? = 0
        while let after = device {
            device = try await writeSending { db in try RunEnding(db, run, now: now).suppressSlice(after: after) }
        }
    }

    package func abandonedRuns() async throws -> [Run] {
        let owned = try await read { db in
            try RunRow.fetch(
                db, "WHERE owner IS NOT NULL OR state = :cancelled AND finished_at IS NULL ORDER BY id",
                ["cancelled": RunState.cancelled.rawValue])
        }
        return owned.filter { $0.owner.map { !isAlive($0) } ?? true }
    }

    package func abandon(_ run: Int64, of owner: String?, now: Timestamp) async throws -> Bool {
        let isCancelled: Bool? = try await write { db in
            let lock = try RunLock(db, run)
            guard lock.owner == owner else { return nil }
            if lock.state != .cancelled { try RunLock.open(db, run) }
            return lock.state == .cancelled
        }
        if isCancelled == true { try await endIfCancelled(run, now: now) }
        return isCancelled != nil
    }

    package func ownersOnRecord() async throws -> Set<String> {
        try await read { db in
            try String.fetchSet(
                db, sql: "SELECT owner FROM run WHERE owner IS NOT NULL UNION SELECT owner FROM lease")
        }
    }
}

/// Why a run that nobody has is not to be taken.
private struct ClaimRefusal {
    private let db: Database
    private let run: Run
    private let owed: OwedDeliveries

    /// - Parameter owed: as it was found before the transaction.
    init(_ db: Database, _ run: Int64, _ owed: OwedDeliveries) throws {
        self.db = db
        self.run = try RunRow.require(db, run)
        self.owed = owed
    }

    /// Nil: it may be taken. One that has become late is put on record as such. What its last owner left in flight stays
    /// that owner's, to be recovered as ever.
    func find(for actor: Actor, at now: Timestamp) throws -> RunClaim? {
        if run.state == .paused, let pause { return pause }
        let lateness = try LatePolicy(run).lateness(at: now) {
            try owed.isOf(run) ? owed.owed : OwedDeliveries(db, run.id, at: now).owed
        }
        guard let lateness else { return nil }
        let reason = lateness.reason(run: run.id)
        try RunEnding(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: .late)
        return .late(reason)
    }

    private var pause: RunClaim? {
        if let person = run.pausedBy { return .paused(by: person, reason: run.stateReason) }
        let reason = run.stateReason ?? "no reason given"
        return switch run.halt {
        case .breaker: .breakerOpen(reason)
        case .late: .late(reason)
        case .unreachable, .credential, nil: nil
        }
    }
}

/// What a run still has to send, counted where ``LatePolicy`` asks for it.
private struct OwedDeliveries {
    private let run: Run
    private(set) var owed: LatePolicy.Owed?

    init(_ db: Database, _ run: Int64, at now: Timestamp) throws {
        let run = try RunRow.require(db, run)
        self.run = run
        var counted: LatePolicy.Owed?
        _ = try LatePolicy(run).lateness(at: now) {
            counted = try Self.count(db, run, at: now)
            return counted
        }
        owed = counted
    }

    /// Whether nothing has been sent or settled since.
    func isOf(_ run: Run) -> Bool { run.counts == self.run.counts && run.heartbeatAt == self.run.heartbeatAt }

    /// Along the primary key: through the index of those that wait every row would be looked up, six times as slow.
    private static func count(_ db: Database, _ run: Run, at now: Timestamp) throws -> LatePolicy.Owed? {
        guard run.counts.pending + run.counts.leased > 0 else { return nil }
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*) FILTER (WHERE not_before IS NULL OR not_before = :in_flight),
                    count(*) FILTER (WHERE not_before <= :now), min(not_before)
                FROM delivery NOT INDEXED
                WHERE run_id = :run AND state = \(DeliveryState.pending.rawValue)
                """,
            arguments: ["run": run.id, "now": now.milliseconds, "in_flight": LeaseTransaction.inFlight])
        guard let row else { return nil }
        let (atOnce, overdue): (Int, Int) = (row[0], row[1])
        return LatePolicy.Owed(due: atOnce + overdue, firstDue: atOnce > 0 ? nil : Timestamp(stored: row[2]))
    }
}
