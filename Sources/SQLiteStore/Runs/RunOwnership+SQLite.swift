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
            if lock.state == .paused, let person = lock.pausedBy {
                return .paused(by: person, reason: try RunRow.require(db, run).stateReason)
            }
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
            try db.execute(
                sql: "UPDATE run SET heartbeat_at = :now WHERE id = :run",
                arguments: ["run": run, "now": now.milliseconds])
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
                        state, reason: reason, actor: owner, pausedBy: lock.pausedBy)
                }
            }
            try db.execute(
                sql: "UPDATE run SET halt = :halt WHERE id = :run", arguments: ["run": run, "halt": halt?.rawValue])
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
            switch RunTransition(from: lock.state, to: state).request(isPausedByItself: isPausedByItself) {
            case .nothingToDo: return false
            case .refused: throw StoreError.illegalChange(run: run, from: lock.state, to: state)
            case .carriedOut: break
            }
            let ending = RunEnding(db, run, now: now)
            let pausedBy = state == .paused ? actor.name : nil
            let holder = lock.holder(apartFrom: nil, isAlive: isAlive)
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
