package import Model
package import Store

/// The methods of ``DeliveryQueue`` that a lease does not call.
extension RelationalStore {
    package func recover(
        _ run: Int64, heldBy owner: String, _ leases: [AbandonedLease], _ settlements: [Settlement], now: Timestamp
    ) async throws -> DeliveryCounts {
        try await transaction(.durableOnServer) { db in
            try RunOwner.requireRecord(owner, of: run, db)
            return try LeaseRecovery(db, run, now: now).endLeases(leases, settlements)
        }
    }

    package func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int {
        try await bySlices(.quick) { db, after in
            try MismatchedDeliveries(db, run: run).suspendSlice(environment, after: after, now: now)
        }
    }

    package func markGone(run: Int64, now: Timestamp) async throws -> Int {
        try await bySlices(.quick) { db, after in try FoundGone(db, run: run).markSlice(after: after) }
    }

    package func goneBefore(run: Int64) async throws -> [(gone: Int, answered: Int)] {
        try await snapshot(.expensive) { db in
            let record = try RunRow.require(db, run)
            return try RunStages(db, record, actor: Actor(record.owner ?? "")).goneBefore()
        }
    }

    package func mismatchCounts(run: Int64) async throws -> [MismatchCount] {
        // This reads all outcomes of the run, so it has no short time limit. Such a limit would end every attempt,
        // and the run would never end.
        try await snapshot(.expensive) { db in try MismatchedDeliveries(db, run: run).counts() }
    }

    package func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int {
        try await bySlices(.quickOfSender) { db, after in
            try RunOwner.require(owner, of: run, db)
            // A run in a final state has no sender for reopened deliveries.
            guard try !RunOwner.locked(db, run).state.isFinal else { return (0, nil) }
            return try MismatchedDeliveries(db, run: run).reopenSlice(environment, after: after, now: now)
        }
    }

    /// Ends the freeze of a run, when all its deliveries are written.
    ///
    /// Sending begins before the freeze ends. So a device may be found gone before the other devices of its user are
    /// written, and then none of them could replace it. Each such user gets the copy on another device now.
    package func endFreeze(_ frozen: Run, by owner: String, now: Timestamp) async throws -> DeliveryCounts {
        let run = frozen.id
        if UserFallback(frozen) != nil { try await replaceGone(run, by: owner, now: now) }
        // Durable, because a sender that knows the run as frozen never freezes it again.
        return try await transaction(.durableOfSender) { db in
            try RunOwner.require(owner, of: run, db)
            _ = try db.execute("UPDATE run SET is_frozen = true WHERE id = $1", run)
            return try RunRow.require(db, run).counts
        }
    }

    private func replaceGone(_ run: Int64, by owner: String, now: Timestamp) async throws {
        // Waits for the leases and settlements that looked for another device before the last one was written.
        try await transaction(.quickOfSender) { db in try RunOwner.alone(db, run).require(owner) }
        var gone = try await snapshot(.expensive) { db in try UserFallbacks(db, run: run, at: now).gone() }[...]
        while !gone.isEmpty {
            let slice = Array(gone.prefix(UserFallbacks<Session>.atOnce))
            gone = gone.dropFirst(slice.count)
            // Most of them were gone before the freeze, which chose another device at once. Finding that locks nothing.
            let isFound = try await snapshot(.expensive) { db in
                try UserFallbacks(db, run: run, at: now).canReplace(slice)
            }
            guard isFound else { continue }
            try await transaction(.quickOfSender) { db in
                try RunOwner.require(owner, of: run, db)
                var change = DeliveryCounts()
                let replaced = try UserFallbacks(db, run: run, at: now).replace(slice)
                change.reopen(replaced)
                if replaced.count > 0 { try RunRow.add(change, replacing: replaced, to: run, at: now, db) }
            }
        }
    }

    /// Runs a transaction for each slice of a run, and returns the sum of their counts.
    private func bySlices(
        _ promise: WritePromise,
        _ slice: @escaping @Sendable (_ db: Session, _ after: Int64) throws -> (count: Int, last: Int64?)
    ) async throws -> Int {
        var (sum, device) = (0, Int64?.some(0))
        while let after = device {
            let (count, last) = try await transaction(promise) { db in try slice(db, after) }
            sum += count
            device = last
        }
        return sum
    }
}
