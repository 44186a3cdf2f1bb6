package import Model
package import Store

extension AudienceGrew {
    /// Checks in the freeze's snapshot whether the audience has grown beyond the signed or counted reach.
    ///
    /// - Parameter pending: counts the snapshot's devices that the freeze does not suppress. It is called only if
    ///   the run's reach is limited.
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

    /// Pauses the run until a person decides, and records its current reach.
    package func pause(_ db: some SQLSession, owner: String, now: Timestamp) throws {
        try RunOwner.require(owner, of: run, db)
        try db.execute("UPDATE run SET reach = $2 WHERE id = $1", run, reach)
        try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: Actor(owner), halt: halt)
    }
}
