package import Model
package import Store

extension AudienceGrew {
    /// Checks, in the snapshot that is frozen, whether the audience has grown beyond the signed or counted reach.
    ///
    /// - Parameter pending: counts the snapshot's devices that are not left out; called only if the run is bounded.
    /// - Returns: `nil` if the audience has not grown, or if it was never counted.
    package static func found(_ run: Run, _ db: some SQLSession, pending: () throws -> Int) throws -> AudienceGrew? {
        guard let limits = try ReachLimits.of(run.id, db) else { return nil }
        if limits.segments != nil {
            let segments = try SegmentContents(of: run.definition.campaign, db)
            if let changed = limits.halt(run.id, segments: segments) { return changed }
        }
        guard limits.isBounded else { return nil }
        return limits.halt(run.id, at: run.counts.audience - run.counts.suppressed + (try pending()))
    }

    /// Records that the run waits for a person, and its current number of devices.
    package func pause(_ db: some SQLSession, owner: String, now: Timestamp) throws {
        try RunOwner.require(owner, of: run, db)
        try db.execute("UPDATE run SET reach = $2 WHERE id = $1", run, reach)
        try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: Actor(owner), halt: halt)
    }
}
