import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim {
        let isAlive = isAlive
        // Counting ten million deliveries takes seconds: not while nobody else can write.
        let owed = try await owed(run, at: now)
        let answer: RunClaim? = try await write { db in
            let current = try RunOwner(db, run)
            if let holder = current.holder(apartFrom: owner.name, isAlive: isAlive) {
                return .held(by: holder, heartbeat: current.heartbeat ?? now)
            }
            guard !current.state.isFinal else { return nil }
            if let refusal = try ClaimRow.refusal(db, run, owed, for: owner, at: now) { return refusal }
            try current.take(db, by: owner, now: now)
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
            let current = try RunOwner(db, run)
            try current.require(owner)
            try RunOwner.heard(db, run, at: now)
            return current.state
        }
    }

    private func owed(_ run: Int64, at now: Timestamp) async throws -> OwedDeliveries {
        let record = try await read(.short) { db in try RunRow.require(db, run) }
        return try await OwedDeliveries.ofClaim(record, at: now) {
            try await read(.expensive) { db in try ClaimRow.owed(db, run, at: now) }
        }
    }

    package func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, halt: RunHalt?, now: Timestamp
    ) async throws {
        try await suppressRest(of: run, now: now)
        try await writeDurably(patience: .ofSenders) { db in
            let current = try RunOwner(db, run)
            try current.require(owner.name)
            let state = RunTransition.release(as: state, from: current.state, halt: current.halt)
            if current.state == .cancelled {
                // Who cancelled it is on record.
                try RunStateChange(db, run, now: now).finishCancelled()
            } else if state != .running {
                if state != current.state, !RunTransition(from: current.state, to: state).isAllowed {
                    throw StoreError.illegalChange(run: run, from: current.state, to: state)
                }
                // A pause somebody asked for keeps their reason, and waits for them; so does one that waits for anybody.
                let isKept = current.state == .paused && (reason == nil || current.halt?.waitsForPerson == true)
                if state != .paused || !isKept {
                    try RunStateChange(db, run, now: now).enter(
                        state, reason: reason, actor: owner, pausedBy: current.pausedBy, halt: halt)
                }
            }
            try RunOwner.heard(db, run, at: now)
            try RunOwner.open(db, run)
        }
    }

    package func halt(
        _ run: Int64, by owner: Actor, _ halt: RunHalt, reason: String, now: Timestamp
    ) async throws {
        try await writeDurably(patience: .ofSenders) { db in
            let current = try RunOwner(db, run)
            try current.require(owner.name)
            guard current.state == .running else { return }
            try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: owner, halt: halt)
        }
    }

    package func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor, seen: SeenRun?
    ) async throws {
        let isAlive = isAlive
        let isToBeEnded = try await writeDurably { db in
            try seen?.require(try RunRow.require(db, run))
            let current = try RunOwner(db, run)
            if state == .running { try current.halt?.requireResumable(run) }
            let isPausedByItself = current.state == .paused && current.pausedBy == nil
            let holder = current.holder(apartFrom: nil, isAlive: isAlive)
            switch RunTransition(from: current.state, to: state).request(isPausedByItself: isPausedByItself) {
            case .nothingToDo where state != .running || holder != nil: return false
            case .refused: throw StoreError.illegalChange(run: run, from: current.state, to: state)
            // Of a run that is to go on and that nobody has, it is put on record who said so, and when.
            case .nothingToDo, .carriedOut: break
            }
            // It is on record already, by whom and why; what an owner that died has left of it is ended.
            if current.state == .cancelled, state == .cancelled { return holder == nil }
            let change = RunStateChange(db, run, now: now)
            let pausedBy = state == .paused ? actor.name : nil
            // Whoever resumes it is to know what it was held for, whoever paused it since.
            let halt = state == .paused ? current.halt.flatMap { $0.outlastsPause ? $0 : nil } : nil
            let reason =
                halt == nil ? reason : [reason, current.reason].compactMap(\.self).joined(separator: "; before: ")
            if state == .running {
                try RunOwner.heard(db, run, at: now)
                if current.halt == .stage { try Self.releaseStages(of: run, by: actor, db) }
                if current.halt == .volume, var limits = try ReachLimits.of(run, db) {
                    limits.most = limits.raised
                    try limits.write(to: run, db)
                }
            }
            if holder != nil || state == .cancelled {
                try change.note(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
            } else {
                try change.enter(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
                if state.isFinal { try RunOwner.open(db, run) }
            }
            return holder == nil && state == .cancelled
        }
        if isToBeEnded { try await endIfCancelled(run, now: now) }
    }

    /// Ends a cancelled run that nobody has, a slice at a time; what a process that ends meanwhile leaves is taken up
    /// by the next.
    private func endIfCancelled(_ run: Int64, now: Timestamp) async throws {
        try await suppressRest(of: run, now: now)
        let isAlive = isAlive
        try await writeDurably { db in
            let current = try RunOwner(db, run)
            guard current.state == .cancelled, current.holder(apartFrom: nil, isAlive: isAlive) == nil else { return }
            try RunStateChange(db, run, now: now).finishCancelled()
        }
    }

    /// Of a run that is not cancelled: nothing.
    private func suppressRest(of run: Int64, now: Timestamp) async throws {
        var device: Int64? = 0
        while let after = device {
            device = try await writeSending { db in try RunStateChange(db, run, now: now).suppressSlice(after: after) }
        }
    }

    package func abandonedRuns() async throws -> [Run] {
        let owned = try await read(.short) { db in
            try RunRow.list(
                db, "WHERE owner IS NOT NULL OR state = :cancelled AND finished_at IS NULL ORDER BY id",
                ["cancelled": RunState.cancelled.rawValue]
            ).readable
        }
        return owned.filter { $0.owner.map { !isAlive($0) } ?? true }
    }

    package func abandon(_ run: Int64, of owner: String?, now: Timestamp) async throws -> Bool {
        let isCancelled: Bool? = try await write { db in
            let current = try RunOwner(db, run)
            guard current.owner == owner else { return nil }
            if current.state != .cancelled { try RunOwner.open(db, run) }
            return current.state == .cancelled
        }
        if isCancelled == true { try await endIfCancelled(run, now: now) }
        return isCancelled != nil
    }

    /// There is one sender at a time: whoever else stands under the run or a lease is gone, as its owner knows.
    package func takeOverLeases(of run: Int64, besides owner: String?) async throws -> Set<String> {
        try await read(.short) { db in
            try String.fetchSet(
                db,
                sql: """
                    SELECT owner FROM run WHERE id = ? AND owner IS NOT NULL
                    UNION SELECT owner FROM lease WHERE run_id = ?
                    """, arguments: [run, run])
        }
    }

    package func ownersOnRecord() async throws -> Set<String> {
        try await read(.short) { db in
            try String.fetchSet(
                db, sql: "SELECT owner FROM run WHERE owner IS NOT NULL UNION SELECT owner FROM lease")
        }
    }
}

/// What a run still has to send, and why it is not to be taken.
private enum ClaimRow {
    static func owed(_ db: Database, _ run: Int64, at now: Timestamp) throws -> OwedDeliveries {
        try OwedDeliveries(RunRow.require(db, run), at: now) { try count(db, run, at: now) }
    }

    /// Nil: it may be taken. One that has become late is put on record as such. What its last owner left in flight
    /// stays that owner's, to be recovered as ever.
    static func refusal(
        _ db: Database, _ run: Int64, _ owed: OwedDeliveries, for actor: Actor, at now: Timestamp
    ) throws -> RunClaim? {
        let refusal = try owed.refusal(
            of: RunRow.require(db, run), StopRecord.read(SQLiteSession(db)), at: now,
            after: ClockRecord(SQLiteSession(db)).latestSteps()
        ) {
            try count(db, run, at: now)
        }
        switch refusal {
        case nil: return nil
        case .known(let claim): return claim
        case .foundLate(let reason):
            try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: actor, halt: .late)
            return .late(reason)
        }
    }

    /// Along the primary key: through the index of those that wait every row would be looked up, six times as slow.
    static func count(_ db: Database, _ run: Int64, at now: Timestamp) throws -> LatePolicy.Owed? {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*) FILTER (WHERE not_before IS NULL OR not_before >= :held),
                    count(*) FILTER (WHERE not_before <= :now), min(not_before),
                    count(*) FILTER (WHERE not_before <= :now AND leases > 0)
                FROM delivery NOT INDEXED
                WHERE run_id = :run AND state = \(DeliveryState.pending.rawValue)
                """,
            arguments: ["run": run, "now": now.milliseconds, "held": NotBefore.heldFrom])
        guard let row else { return nil }
        let (atOnce, overdue): (Int, Int) = (row[0], row[1])
        return LatePolicy.Owed(
            due: atOnce + overdue, firstDue: atOnce > 0 ? nil : NotBefore.moment(row[2]),
            heldUntil: StageGate.heldUntil(try RunRow.require(db, run), try SQLiteStageBook.records(db, run: run)),
            returned: row[3])
    }
}
