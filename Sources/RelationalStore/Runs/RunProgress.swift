import Model
package import Store

extension RunProgress {
    /// Reads the progress of a run, without its definition. Throws ``StoreError/noSuchRun(_:)``.
    package init(_ db: some SQLSession, run: Int64) throws {
        let found = try db.first(
            """
            SELECT state, is_frozen, finished_at IS NOT NULL, audience, pending, leased, accepted, rejected, unknown,
                suppressed
            FROM run WHERE id = $1
            """, run
        ) { row in
            var counts = DeliveryCounts()
            counts.audience = try row.int(3)
            counts.pending = try row.int(4)
            counts.leased = try row.int(5)
            counts.accepted = try row.int(6)
            counts.rejected = try row.int(7)
            counts.unknown = try row.int(8)
            counts.suppressed = try row.int(9)
            return RunProgress(
                state: try row.text(0), isFrozen: try row.bool(1), isEnded: try row.bool(2), counts: counts)
        }
        guard let found else { throw StoreError.noSuchRun(run) }
        self = found
    }
}
