import Model
import Store

extension RelationalStore {
    /// The number of rows deleted per transaction.
    private static var capsPerSlice: Int { 2_000 }

    /// Deletes the rows of the cap ledger that can no longer count. All their pushes are older than two of the longest
    /// windows, even if the clock was changed.
    ///
    /// Works in slices, each a transaction, so that senders continue meanwhile.
    func pruneCaps(at now: Timestamp) async throws {
        // The ledger proves nothing about that time any more. This comes first, because a later slice may fail.
        let past = try await transaction(.durableOnServer) { db in
            let past = RollingWindow(
                limit: 1, length: FrequencyCap.windowMax, for: .frequencyCap, at: try db.moment(now),
                after: try ClockRecord(db).latestSteps()
            ).forgottenUpTo
            try db.execute(
                """
                UPDATE run SET capped_since = CASE WHEN finished_at < $1 THEN NULL ELSE $1 END
                WHERE capped_since < $1 AND created_at < $1
                """, past)
            return past
        }
        var last: (kind: Int64, id: Int64) = (.min, .min)
        while true {
            try Task.checkCancellation()
            let after = last
            let slice = try await snapshot(.expensive) { db in
                try db.all(
                    """
                    SELECT kind, id FROM cap_ledger WHERE latest < $1 AND (kind, id) > ($2, $3)
                    ORDER BY kind, id LIMIT \(Self.capsPerSlice)
                    """, past, after.kind, after.id
                ) { (kind: try $0.int64(0), id: try $0.int64(1)) }
            }
            guard let end = slice.last else { return }
            last = end
            try await transaction(.quick) { db in
                for (kind, keys) in Dictionary(grouping: slice, by: \.kind).sorted(by: { $0.key < $1.key }) {
                    // Skip a row that a lease has locked. The next call deletes it.
                    try db.execute(
                        """
                        DELETE FROM cap_ledger WHERE kind = $1 AND id IN (
                            SELECT id FROM cap_ledger
                            WHERE kind = $1 AND id \(Session.dialect.isAny(2)) AND latest < $3\(Session.dialect.skipLocked)
                        )
                        """, kind, keys.map(\.id), past)
                }
            }
        }
    }
}
