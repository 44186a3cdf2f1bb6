package import Model
import RelationalStore
import Store

extension PostgresDatabase {
    package func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run] {
        try await read(.short) { db in
            let isAlive = try LivingSenders(db, self)
            var joining = JoinPolicy(isIdle: inHand.isEmpty, now: try db.moment(Timestamp(milliseconds: 0)))
            return try RunRow.list(
                db,
                """
                WHERE id IN (
                    SELECT id FROM run WHERE state IN (\(SQLConstants.list(RunState.open)))
                        AND (NOT is_test OR starts_with(occurrence, '\(TestOccurrence.handedOverPrefix)'))
                    UNION ALL
                    SELECT id FROM run WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL
                        AND NOT is_test AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue))))
                ) AND id <> ALL ($1)
                ORDER BY id
                """, Array(inHand)
            ).readable.filter { run in
                guard let lead = run.owner, lead != owner, isAlive(lead) else { return true }
                return self.takeoverAfter != nil && joining.joins(run)
            }
        }
    }
}
