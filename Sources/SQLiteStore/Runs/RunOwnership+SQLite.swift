import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim {
        let isAlive = isAlive
        let answer: RunClaim? = try await write { db in
            let lock = try RunLock(db, run)
            if let holder = lock.holder(apartFrom: owner.name, isAlive: isAlive) {
                return .held(by: holder, heartbeat: lock.heartbeat ?? now)
            }
            guard !lock.state.isFinal else { return nil }
            if let refusal = try ClaimRefusal(db, run).find(for: owner, at: now) { return refusal }
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
            if state != .running {
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

    init(_ db: Database, _ run: Int64) throws {
        self.db = db
        self.run = try RunRow.require(db, run)
    }

    /// Nil: it may be taken. One that has become late is put on record as such. What its last owner left in flight stays
    /// that owner's, to be recovered as ever.
    func find(for actor: Actor, at now: Timestamp) throws -> RunClaim? {
        if run.state == .paused, let pause { return pause }
        guard let lateness = try LatePolicy(run).lateness(at: now, owed: { try owed(at: now) }) else { return nil }
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

    /// Counted in the index of those that wait: all others without an outcome are due.
    private func owed(at now: Timestamp) throws -> LatePolicy.Owed? {
        let left = run.counts.pending + run.counts.leased
        guard left > 0 else { return nil }
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*), count(*) FILTER (WHERE not_before <= :now), min(not_before)
                FROM delivery INDEXED BY delivery_waiting
                WHERE run_id = :run AND state = \(DeliveryState.pending.rawValue)
                    AND not_before IS NOT NULL AND not_before < :in_flight
                """,
            arguments: ["run": run.id, "now": now.milliseconds, "in_flight": LeaseTransaction.inFlight])
        guard let row else { return nil }
        let (waiting, overdue): (Int, Int) = (row[0], row[1])
        return LatePolicy.Owed(
            due: left - waiting + overdue, firstDue: waiting < left ? nil : Timestamp(stored: row[2]))
    }
}
