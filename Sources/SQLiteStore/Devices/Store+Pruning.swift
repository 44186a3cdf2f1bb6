import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Deletes devices that are gone since before `goneBefore`, and those neither seen nor registered since
    /// `notSeenSince`; nil leaves that kind alone. With `dryRun` they are only counted.
    ///
    /// Works in batches of some thousand, each a transaction that looks at its devices again, so that a registration in
    /// between keeps its device, memory stays flat, and what was stopped in the middle goes on with the same call.
    /// Tags, memberships and old tokens go with the device; deliveries and reports stay. Unless it is a dry run, an
    /// event says who pruned how many.
    package func pruneDevices(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, dryRun: Bool,
        now: Timestamp,
        by actor: Actor
    ) async throws -> PruneCounts {
        let pruning = DevicePruning(topic: topic, goneBefore: goneBefore, notSeenSince: notSeenSince, now: now)
        var counts = PruneCounts()
        var after: Int64 = 0
        while true {
            let start = after
            let batch = try await read { db in
                try pruning.candidates(db, after: start, limit: StoreLimits.pruneBatchRows)
            }
            guard let last = batch.last else { break }
            after = last.device
            try Task.checkCancellation()
            let reasons =
                dryRun
                ? batch.map(\.reason)
                : try await write { db in try batch.compactMap { try pruning.delete($0.device, db) } }
            for reason in reasons { counts.add(reason) }
        }
        if !dryRun, counts.total > 0 {
            let detail = "gone \(counts.gone), not seen \(counts.notSeen)"
            try await recordEvent(kind: "devices_pruned", run: nil, actor: actor, detail: detail, now: now)
        }
        return counts
    }
}

extension PruneCounts {
    fileprivate mutating func add(_ reason: DevicePruning.Reason) {
        switch reason {
        case .gone: gone += 1
        case .notSeen: notSeen += 1
        case .kept: kept += 1
        }
    }
}
