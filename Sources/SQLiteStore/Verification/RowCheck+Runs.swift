import Store
import Model

extension RowCheck {
    private static func list(_ texts: [String]) -> String {
        texts.map { "'\($0)'" }.joined(separator: ", ")
    }

    /// What runs, and the rows that are nobody's, promise.
    static let runs = [
        RowCheck(
            "occurrences", "an occurrence of a campaign is one run",
            """
            SELECT min(id), NULL, 'its occurrence is also run ' || max(id)
            FROM run NOT INDEXED GROUP BY campaign, occurrence HAVING count(*) > 1
            """),
        RowCheck(
            "run_states", "a run is in a known state, and one that is over has nothing left to do",
            """
            SELECT id, NULL, CASE
                WHEN state NOT IN (\(list(RunState.allCases.map(\.rawValue)))) THEN 'its state is "' || state || '"'
                WHEN min(audience, pending, leased, accepted, rejected, unknown, suppressed) < 0
                    THEN 'a figure of its account is below 0'
                WHEN state = 'finished' AND NOT is_frozen THEN 'it is finished, but its audience was never complete'
                WHEN state = 'finished' AND pending + leased > 0
                    THEN 'it is finished, with ' || (pending + leased) || ' deliveries left'
                WHEN state = 'finished' AND owner IS NOT NULL THEN 'it is finished, but still held by ' || owner
                -- What was cancelled is over once its owner has let go.
                WHEN state IN (\(list(RunState.allCases.filter(\.isFinal).map(\.rawValue))))
                    AND owner IS NULL AND finished_at IS NULL THEN 'it is over, and nothing says since when'
            END AS what
            FROM run WHERE what IS NOT NULL
            """),
        RowCheck(
            "orphans", "every row of a run belongs to one",
            """
            -- Hops from run to run along the primary key instead of reading every delivery.
            WITH RECURSIVE named (id) AS (
                SELECT min(run_id) FROM delivery
                UNION ALL
                SELECT (SELECT min(run_id) FROM delivery WHERE run_id > named.id) FROM named WHERE named.id IS NOT NULL
            )
            SELECT id, NULL, 'it has deliveries, but there is no such run'
            FROM named WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM run)
            UNION ALL
            SELECT run_id, NULL, 'it has a lease, but there is no such run'
            FROM lease WHERE run_id NOT IN (SELECT id FROM run)
            UNION ALL
            SELECT id, NULL, 'its outcomes were pruned, and it is not over'
            FROM run WHERE outcomes_pruned_at IS NOT NULL AND finished_at IS NULL
            UNION ALL
            SELECT run_id, NULL, 'it has an event (' || kind || '), but there is no such run'
            FROM event WHERE run_id IS NOT NULL AND run_id NOT IN (SELECT id FROM run)
            UNION ALL
            SELECT run_id, device_id, 'the silent ledger names it, but there is no such run'
            FROM silent_ledger WHERE run_id NOT IN (SELECT id FROM run)
            """),
    ]

    /// What each delivery promises on its own.
    static let deliveries = [
        RowCheck(
            "deliveries", "every end state is one that APNs' answer, or a reason of ours, accounts for",
            """
            SELECT run_id, device_id, CASE
                WHEN doubts > attempt OR attempt < 0 OR doubts < 0
                    THEN 'it counts ' || doubts || ' lost answers of ' || attempt || ' requests'
                WHEN state = 1 AND status <> 200 THEN 'it is accepted with status ' || status
                WHEN state IN (1, 2, 3) AND attempt = 0 THEN 'it has an outcome without a request'
                WHEN state = 4
                    AND coalesce(reason, '') NOT IN (\(list(SuppressionReason.allCases.map(\.rawValue))))
                    THEN 'it is suppressed for "' || coalesce(reason, '') || '", which is no reason'
                WHEN state <> 0 AND not_before IS NOT NULL THEN 'it has its end state, and still waits for a time'
                WHEN device_id > (SELECT seq FROM sqlite_sequence WHERE name = 'device') OR device_id < 1
                    THEN 'there never was such a device'
            END AS what
            FROM delivery WHERE what IS NOT NULL
            """)
    ]
}
