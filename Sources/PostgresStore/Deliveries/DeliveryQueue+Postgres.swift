package import Model
package import Store
import Synchronization
import RelationalStore

extension PostgresDatabase {
    package func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        let frozen = try await read(.short) { db in try RunRow.require(db, run) }
        guard !frozen.isFrozen else { return frozen.counts }
        // It is handed over to a writing connection while the snapshot stays open, a batch at a time.
        let batches = Handover<FreezeSource.Batch>()
        async let reading: Void = put(frozen, now: now, into: batches, onBatch)
        defer { batches.close() }
        var counts = frozen.counts
        while let batch = try await batches.take() {
            // Whoever heard that it is frozen never freezes it again.
            counts = try await write(batch.isLast ? .durable : .quick) { db in
                // Two freezes side by side would each write what the other has written.
                try RunOwner.require(owner, of: run, db)
                return try FreezeBatch(db, run: run, now: db.moment(now)).insert(batch)
            }
            batches.deal()
            if batch.isLast { break }
        }
        do {
            try await reading
        } catch let grown as GrownRun {
            try await write(.durable) { db in try grown.pause(db, owner: owner, now: db.moment(now)) }
            throw grown
        }
        return counts
    }

    /// On a connection of its own: several runs may be frozen at once, for as long as whoever is told takes.
    private func put(
        _ run: Run, now: Timestamp, into batches: Handover<FreezeSource.Batch>,
        _ onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws {
        let snapshot = PostgresPool(pool.address, writers: 0, readers: 1, time: pool.time)
        defer {
            batches.close()
            snapshot.end()
        }
        let devices = try await analystDevices(run.definition.campaign, now: now)
        try await read(.reading.within(.seconds(3600)), from: snapshot) { db in
            var put: [FrozenBatch] = []
            func tell(_ count: Int) {
                for _ in 0..<count {
                    let told = put.removeFirst()
                    if told.audience > 0 { onBatch(told) }
                }
            }
            let source = FreezeSource(db, run, devices: devices, now: now)
            if let grown = try Self.grown(run, source, db) { throw grown }
            try source.read { batch in
                put.append(FrozenBatch(batch.deliveries.lazy.map(\.decision)))
                try batches.put(batch)
                tell(batches.dealtWith())
            }
            while !put.isEmpty { tell(try batches.waitForDealtWith()) }
        }
    }

    /// In the snapshot that is written down. Nil: it has not grown beyond what was seen, or nobody counted it.
    private static func grown(_ run: Run, _ source: FreezeSource, _ db: PostgresSession) throws -> GrownRun? {
        guard let limits = try ReachLimits.of(run.id, db) else { return nil }
        if limits.segments != nil,
            let changed = limits.halt(run.id, segments: try SegmentContents(of: run.definition.campaign, db))
        {
            return changed
        }
        guard limits.isBounded else { return nil }
        var reach = run.counts.audience - run.counts.suppressed
        try source.read { batch in reach += batch.deliveries.count { $0.decision.suppression == nil } }
        return limits.halt(run.id, at: reach)
    }

    /// Durable: a commit that waits for the disk per chunk.
    ///
    /// Where the answer to the commit is lost nobody knows whether there is a lease: none of it is sent, and before this
    /// store leases again it gives back what it finds of it.
    package func lease(_ request: LeaseRequest) async throws -> Lease {
        var request = request
        let limit = max(1, request.limit)
        request.limit = limit
        var suppressions: [SuppressionReason: Int] = [:]
        var moved = 0
        var turn = LeaseTurn()
        let start = ContinuousClock.now
        while true {
            try await giveBackUnheardLeases(now: request.now)
            let asked = request
            let call = UnheardLease(id: Int64.random(in: .min ... .max), run: asked.run)
            let before = ContinuousClock.now - start
            // By a caller's clock, which may go back, nothing is known of what lies before.
            let bound = pool.time == .database ? dueBounds.next(asked) : .start
            let (lease, isExhausted, firstDue) = try await noting(call) {
                try await self.write(.durable) { db in
                    var transaction = LeaseTransaction(db, asked, call: call.id, from: bound)
                    let (lease, isExhausted) = try transaction.take()
                    return (lease, isExhausted, transaction.firstDue)
                }
            }
            dueBounds.found(firstDue, asked)
            suppressions.merge(lease.suppressions, uniquingKeysWith: +)
            moved += lease.moved
            let isOpen = lease.deliveries.isEmpty && !isExhausted
            guard turn.mayContinue(afterLooking: asked.limit), isOpen, !Task.isCancelled else {
                var lease = lease
                lease.suppressions = suppressions
                lease.moved = moved
                lease.isCutShort = isOpen
                // The transactions before this one are no difference between the clocks.
                if pool.time == .database { lease.storeAhead -= before }
                return lease
            }
            request.after = lease.cursor
            request.limit = turn.limit(limit)
        }
    }

    private func noting<Value>(_ call: UnheardLease, _ lease: () async throws -> Value) async throws -> Value {
        do {
            return try await lease()
        } catch let error as StoreError {
            if case .outcomeUnknown = error { unheard.withLock { _ = $0.insert(call) } }
            throw error
        }
    }

    func giveBackUnheardLeases(now: Timestamp) async throws {
        for call in unheard.withLock({ $0 }) {
            try await write(.durable) { db in
                // A commit that hangs still holds the sender's right to the run: this waits for its end.
                _ = try RunOwner.alone(db, call.run)
                let recovery = LeaseRecovery(db, call.run, now: now)
                _ = try recovery.end(recovery.left(calls: [call.id]), [])
            }
            unheard.withLock { _ = $0.remove(call) }
        }
    }

    /// Durable as well: the sender's journal forgets an outcome once it is recorded, and unlike a file on its own machine the
    /// server may lose its power without the sender. What came back then as in flight nobody would know to have been sent.
    package func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        try await write(.durable) { db in
            var batch = SettlementBatch(db, run: run, now: now)
            return try batch.record(settlements)
        }
    }

    package func recover(
        _ run: Int64, heldBy owner: String, _ leases: [LeftLease], _ settlements: [Settlement], now: Timestamp
    ) async throws -> DeliveryCounts {
        try await write(.durable) { db in
            try RunOwner.requireRecord(owner, of: run, db)
            return try LeaseRecovery(db, run, now: now).end(leases, settlements)
        }
    }

    package func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int {
        try await bySlices { after in
            try await self.write(.quick) { db in
                try Mismatched(db, run: run).suspendSlice(environment, after: after, now: now)
            }
        }
    }

    package func markGone(run: Int64, now: Timestamp) async throws -> Int {
        try await bySlices { after in
            try await self.write(.quick) { db in try FoundGone(db, run: run).markSlice(after: after) }
        }
    }

    package func goneBefore(run: Int64) async throws -> [(gone: Int, answered: Int)] {
        try await read { db in
            let record = try RunRow.require(db, run)
            return try RunStages(db, record, actor: Actor(record.owner ?? "")).goneBefore()
        }
    }

    package func mismatchCounts(run: Int64) async throws -> [MismatchCount] {
        // All outcomes of the run: a limit that it exceeds once it exceeds at each retry, and the run would never end.
        try await read(.expensive) { db in
            try DeliveryTable(run: run).isThere(db) ? Mismatched(db, run: run).counts() : []
        }
    }

    package func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int {
        try await bySlices { after in
            try await self.write(.quick) { db in
                try RunOwner.require(owner, of: run, db)
                // Nobody would send them.
                guard try !RunOwner.locked(db, run).state.isFinal else { return (0, nil) }
                return try Mismatched(db, run: run).reopenSlice(environment, after: after, now: now)
            }
        }
    }

    /// One transaction for each slice of a run; the sum of what they did.
    private func bySlices(
        _ slice: @Sendable (_ after: Int64) async throws -> (count: Int, last: Int64?)
    ) async throws -> Int {
        var (sum, device) = (0, Int64?.some(0))
        while let after = device {
            let (count, last) = try await slice(after)
            sum += count
            device = last
        }
        return sum
    }
}

extension GrownRun {
    fileprivate func pause(_ db: PostgresSession, owner: String, now: Timestamp) throws {
        try RunOwner.require(owner, of: run, db)
        try db.execute("UPDATE run SET reach = $2 WHERE id = $1", run, Int64(reach))
        try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: Actor(owner), halt: halt)
    }
}
