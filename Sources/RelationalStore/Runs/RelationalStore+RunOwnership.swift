package import Model
package import Store

extension RelationalStore {
    package func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim {
        // Counting ten million deliveries takes seconds, so count without a lock.
        let remaining = try await remaining(run, at: now)
        try await beatBeforeClaim(owner.name)
        let answer: RunClaim? = try await transaction(.quick) { [self] db in
            let isAlive = try living(db, at: run)
            let current = try RunOwner.alone(db, run)
            try requireNotLost(owner.name, db)
            if let holder = current.holder(apartFrom: owner.name, isAlive: isAlive) {
                return .held(by: holder, heartbeat: current.heartbeat ?? now)
            }
            guard !current.state.isFinal else { return nil }
            if let refusal = try ClaimRow.refusal(db, run, remaining, for: owner, at: now) { return refusal }
            try current.claim(db, by: owner, isAlive, now: now)
            return .claimed
        }
        guard let answer else {
            // If the owner of a cancelled run died before it could end the run, end the run now, although the claim
            // fails.
            try await endIfCancelled(run, now: now)
            let state = try await self.run(run)?.state ?? .cancelled
            throw StoreError.runIsOver(run: run, state: state)
        }
        return answer
    }

    private func remaining(_ run: Int64, at now: Timestamp) async throws -> RemainingDeliveries {
        let record = try await snapshot(.short) { db in try RunRow.require(db, run) }
        return try await RemainingDeliveries.ofClaim(record, at: now) {
            try await snapshot(.expensive) { db in try ClaimRow.remaining(db, run, at: now) }
        }
    }

    package func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, halt: RunHalt?, now: Timestamp
    ) async throws {
        try await settleBeforeRelease(now: now)
        try await suppressRest(of: run, now: now)
        try await transaction(.durableOfSender) { [self] db in
            let isAlive = try living(db, at: run)
            let current = try RunOwner.alone(db, run)
            try current.require(owner.name)
            try RunOwner.heard(db, run, at: now)
            try RunOwner.open(db, run, of: owner.name)
            // The last sender that leaves a cancelled run ends the run. Until then, other senders still wait for
            // responses.
            if current.state == .cancelled, try current.left(by: owner.name).isHeld(db, isAlive) { return }
            let state = RunTransition.release(as: state, from: current.state, halt: current.halt)
            if current.state == .cancelled {
                // The person who cancelled the run is already recorded.
                try RunStateChange(db, run, now: now).finishCancelled()
            } else if state != .running {
                if state != current.state, !RunTransition(from: current.state, to: state).isAllowed {
                    throw StoreError.illegalChange(run: run, from: current.state, to: state)
                }
                // A person's pause keeps its reason and waits for that person. A halt that waits for a person also
                // keeps its reason.
                let isKept = current.state == .paused && (reason == nil || current.halt?.waitsForPerson == true)
                if state != .paused || !isKept {
                    try RunStateChange(db, run, now: now).enter(
                        state, reason: reason, actor: owner, pausedBy: current.pausedBy, halt: halt)
                }
            }
        }
        await released(run, state)
    }

    package func halt(
        _ run: Int64, by owner: Actor, _ halt: RunHalt, reason: String, now: Timestamp
    ) async throws {
        try await transaction(.durableOfSender) { db in
            try RunOwner.require(owner.name, of: run, db)
            let current = try RunOwner.locked(db, run)
            guard current.state == .running else { return }
            try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: owner, halt: halt)
        }
    }

    package func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor, seen: SeenRun?
    ) async throws {
        let isToBeEnded = try await transaction(.durable) { [self] db in
            let isAlive = try living(db, at: run)
            let current = try RunOwner.alone(db, run)
            try seen?.require(try RunRow.require(db, run))
            if state == .running { try current.halt?.requireResumable(run) }
            let isPausedByItself = current.state == .paused && current.pausedBy == nil
            let isHeld = try current.isHeld(db, isAlive)
            switch RunTransition(from: current.state, to: state).request(isPausedByItself: isPausedByItself) {
            case .nothingToDo where state != .running || isHeld: return false
            case .refused: throw StoreError.illegalChange(run: run, from: current.state, to: state)
            // The run has no owner: still record who resumed it, and when.
            case .nothingToDo, .carriedOut: break
            }
            // The cancellation is already recorded. If the run's owner is dead, the caller ends the run.
            if current.state == .cancelled, state == .cancelled { return !isHeld }
            let change = RunStateChange(db, run, now: now)
            if state == .running, current.halt == .restored, try change.confirmRestore(by: actor, reason) {
                return false
            }
            let pausedBy = state == .paused ? actor.name : nil
            // Keep the original halt reason, even if a person pauses the run later.
            let halt = state == .paused ? current.halt.flatMap { $0.outlastsPause ? $0 : nil } : nil
            let reason =
                halt == nil ? reason : [reason, current.reason].compactMap(\.self).joined(separator: "; before: ")
            if state == .running {
                try RunOwner.heard(db, run, at: now)
                if current.halt == .stage { try RunStages.release(run, by: actor, db) }
                if current.halt == .volume, var limits = try ReachLimits.of(run, db) {
                    limits.most = limits.raised
                    try limits.write(to: run, db)
                }
            }
            if isHeld || state == .cancelled {
                try change.note(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
            } else {
                try change.enter(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
                if state.isFinal { try RunOwner.open(db, run) }
            }
            return !isHeld && state == .cancelled
        }
        if isToBeEnded { try await endIfCancelled(run, now: now) }
    }

    /// Ends a cancelled run without an owner, one slice at a time. If this process exits in between, the next process
    /// continues.
    package func endIfCancelled(_ run: Int64, now: Timestamp) async throws {
        try await suppressRest(of: run, now: now)
        try await transaction(.durable) { [self] db in
            let isAlive = try living(db, at: run)
            let current = try RunOwner.alone(db, run)
            guard current.state == .cancelled, try !current.isHeld(db, isAlive) else { return }
            try RunStateChange(db, run, now: now).finishCancelled()
        }
        await released(run, .cancelled)
    }

    /// Suppresses the remaining deliveries. Does nothing if the run is not cancelled.
    private func suppressRest(of run: Int64, now: Timestamp) async throws {
        var device: Int64? = 0
        while let after = device {
            device = try await transaction(.quickOfSender) { db in
                try RunStateChange(db, run, now: now).suppressSlice(after: after)
            }
        }
    }

    package func abandon(_ run: Int64, of owner: String?, now: Timestamp) async throws -> Bool {
        let isCancelled: Bool? = try await transaction(.quick) { db in
            let current = try RunOwner.alone(db, run)
            guard current.owner == owner else { return nil }
            if current.state != .cancelled { try RunOwner.open(db, run, of: owner) }
            return current.state == .cancelled
        }
        if isCancelled == true { try await endIfCancelled(run, now: now) }
        return isCancelled != nil
    }
}

extension RelationalStore {
    package func abandonedLeases(_ run: Int64) async throws -> [AbandonedLease] {
        try await snapshot(.short) { db in try db.abandonedLeases(of: run) }
    }

    package func runsWithLeases() async throws -> [Int64] {
        try await snapshot(.short) { db in
            try db.all("SELECT DISTINCT run_id FROM lease ORDER BY run_id") { try $0.int64(0) }
        }
    }
}

/// The remaining deliveries of a run, and the reason for refusing a claim.
private enum ClaimRow {
    static func remaining(_ db: some SQLSession, _ run: Int64, at now: Timestamp) throws -> RemainingDeliveries {
        try RemainingDeliveries(RunRow.require(db, run), at: now) { try count(db, run, at: now) }
    }

    /// Returns `nil` if the run may be claimed. Records that a run has become late, if it has. Requests that the
    /// last owner left in flight stay in that owner's leases until the usual recovery.
    static func refusal(
        _ db: some SQLSession, _ run: Int64, _ remaining: RemainingDeliveries, for actor: Actor, at now: Timestamp
    ) throws -> RunClaim? {
        let refusal = try remaining.refusal(
            of: RunRow.require(db, run), StopRecord.read(db), at: now, after: ClockRecord(db).latestSteps()
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

    /// Counts pending deliveries. On SQLite it uses the primary key. The index of waiting deliveries would need a
    /// look-up for every row, which is six times as slow.
    private static func count<Session: SQLSession>(
        _ db: Session, _ run: Int64, at now: Timestamp
    ) throws -> LatePolicy.Remaining? {
        let heldUntil = StageController.heldUntil(try RunRow.require(db, run), try RunStages.records(db, run: run))
        return try db.first(
            """
            SELECT count(*) FILTER (WHERE not_before IS NULL OR not_before >= \(NotBefore.heldFrom)),
                count(*) FILTER (WHERE not_before <= $2), min(not_before),
                count(*) FILTER (WHERE not_before <= $2 AND leases > 0)
            FROM \(Session.dialect.deliveries(of: run, "NOT INDEXED"))
            WHERE \(Session.dialect.isOf(parameter: 1)) AND state = \(DeliveryState.pending.code)
            """, run, now
        ) { row in
            let (atOnce, overdue) = (try row.int(0), try row.int(1))
            return LatePolicy.Remaining(
                due: atOnce + overdue, firstDue: atOnce > 0 ? nil : NotBefore.moment(try row.int64OrNil(2)),
                heldUntil: heldUntil, returned: try row.int(3))
        }
    }
}
