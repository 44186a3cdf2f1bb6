package import Model
import RelationalStore
package import Store
import Synchronization

extension PostgresDatabase {
    package func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        let frozen = try await read(.short) { db in try RunRow.require(db, run) }
        guard !frozen.isFrozen else { return frozen.counts }
        // A reading connection keeps the snapshot open and passes its rows to a writing connection, one batch at a
        // time.
        let batches = Handover<FrozenDeliveries>()
        async let reading: Void = put(frozen, now: now, into: batches, onBatch)
        defer { batches.close() }
        while let batch = try await batches.next() {
            try await write(.quick) { db in
                // This prevents two simultaneous freezes from each writing the same deliveries.
                try RunOwner.require(owner, of: run, db)
                try FreezeBatch(db, run: run, now: db.moment(now)).insert(batch)
            }
            batches.deal()
        }
        do {
            try await reading
        } catch let grown as AudienceGrew {
            try await write(.durable) { db in try grown.pause(db, owner: owner, now: db.moment(now)) }
            throw grown
        }
        return try await endFreeze(frozen, by: owner, now: now)
    }

    /// Reads the audience on a separate connection, because several runs may be frozen at the same time, and
    /// `onBatch` may take long.
    private func put(
        _ run: Run, now: Timestamp, into batches: Handover<FrozenDeliveries>,
        _ onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws {
        let snapshot = PostgresPool(beside: pool, writers: 0, readers: 1)
        defer {
            batches.close()
            snapshot.shutDown()
        }
        let analyst = try await analystCondition(run.definition.campaign, now: now)
        try await read(.reading.within(.seconds(3600)), from: snapshot) { db in
            var put: [FrozenBatch] = []
            func tell(_ count: Int) {
                for _ in 0..<count {
                    onBatch(put.removeFirst())
                }
            }
            let source = FreezeSource(db, run, analyst: analyst, now: now)
            let grown = try AudienceGrew.found(run, db) {
                var pending = 0
                try source.read { batch in pending += batch.change.pending }
                return pending
            }
            if let grown { throw grown }
            try source.read { batch in
                put.append(batch.summary)
                try batches.put(batch)
                tell(batches.dealtWith())
            }
            while !put.isEmpty { tell(try batches.waitForDealtWith()) }
        }
    }

    /// Leases deliveries. The commit of each chunk waits for the disk.
    ///
    /// If the response to the commit is lost, the lease may or may not exist. None of its deliveries is sent. Before
    /// the next lease, this store releases the deliveries if the lease exists.
    package func lease(_ request: LeaseRequest) async throws -> Lease {
        var request = request
        let limit = max(1, request.limit)
        request.limit = limit
        var round = LeaseRound()
        let start = ContinuousClock.now
        while true {
            try await releaseUnheardLeases(now: request.now)
            let asked = request
            let call = UnheardLease(id: Int64.random(in: .min ... .max), run: asked.run)
            let before = ContinuousClock.now - start
            // If the caller's clock counts, it may be set back, so the bound proves nothing about the deliveries
            // before it.
            let bound = pool.time == .database ? dueBounds.next(asked) : .start
            let (lease, isExhausted, firstDue) = try await noting(call) {
                try await self.write(.durable) { db in
                    var transaction = LeaseTransaction(db, asked, call: call.id, from: bound)
                    let (lease, isExhausted) = try transaction.takeLease()
                    return (lease, isExhausted, transaction.firstDue)
                }
            }
            dueBounds.found(firstDue, asked)
            if var lease = round.add(lease, isExhausted: isExhausted, afterLooking: asked.limit) {
                // Subtract the time of the earlier transactions, because it is not a difference between the clocks.
                if pool.time == .database { lease.storeAhead -= before }
                return lease
            }
            request.after = lease.cursor
            request.limit = round.limit(limit)
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

    func releaseUnheardLeases(now: Timestamp) async throws {
        for call in unheard.withLock({ $0 }) {
            try await write(.durable) { db in
                // A commit that hangs still locks the sender's row of the run, so this waits until the commit ends.
                _ = try RunOwner.alone(db, call.run)
                let recovery = LeaseRecovery(db, call.run, now: now)
                _ = try recovery.endLeases(recovery.left(where: "call_id = $2", call.id), [])
            }
            unheard.withLock { _ = $0.remove(call) }
        }
    }

    /// Records outcomes durably. The sender deletes an outcome from its journal once the outcome is recorded. Unlike
    /// a file on the sender's machine, the server may lose power while the sender continues. Lost outcomes would
    /// leave their deliveries in flight, with no record that they were sent.
    package func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        try await write(.durable) { db in
            var batch = SettlementBatch(db, run: run, now: now)
            return try batch.record(settlements)
        }
    }
}
