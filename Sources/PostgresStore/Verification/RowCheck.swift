import Model
import Store
import RelationalStore

/// A promise that one statement can check: it selects `run`, `device` and `what` of each row that breaks it.
struct RowCheck: Sendable {
    let name: String
    let promise: String
    private let sql: String

    init(_ name: String, _ promise: String, _ sql: String) {
        self.name = name
        self.promise = promise
        self.sql = sql
    }

    /// Counts beyond `faultsMax` without keeping.
    func find(_ db: PostgresSession, faultsMax: Int) throws -> Verification.Check {
        var faults: [StoreFault] = []
        var count = 0
        try db.each(.once(sql)) { row in
            count += 1
            guard count <= faultsMax else { return }
            faults.append(StoreFault(run: try row.int64OrNil(0), device: try row.int64OrNil(1), try row.text(2)))
        }
        return Verification.Check(name, promise, faults: faults, count: count)
    }
}

extension RowCheck {
    /// What devices, their tokens and the sets they are in promise.
    static let devices = [
        RowCheck(
            "tokens", "a token of one topic and environment belongs to one device",
            """
            SELECT NULL::bigint, min(id), 'its token is also held by ' || (count(*) - 1) || ' other device(s), the last is '
                || max(id)
            FROM device GROUP BY token, environment, topic_id HAVING count(*) > 1
            """),
        RowCheck(
            "installations", "an installation of one topic is one device",
            """
            SELECT NULL::bigint, min(id), 'its installation is also ' || (count(*) - 1) || ' other device(s), the last is '
                || max(id)
            FROM device WHERE installation_id IS NOT NULL GROUP BY installation_id, topic_id HAVING count(*) > 1
            """),
        RowCheck(
            "device_status", "no device is suspended or gone for something older than its last registration",
            """
            SELECT NULL::bigint, id, CASE
                WHEN status_at IS NULL THEN 'it is not active, and nothing says since when'
                ELSE 'it was registered at ' || \(SQLConstants.moment("registered_at")) || ', after the '
                    || coalesce(status_reason, 'answer') || ' of ' || \(SQLConstants.moment("status_at"))
                    || ' that took it out' END
            FROM device WHERE status <> \(DeviceStatus.active.code) AND (status_at IS NULL OR registered_at > status_at)
            """),
        RowCheck(
            "token_history", "old and proven tokens are older than the device's, or its own",
            """
            SELECT NULL::bigint, device_id, 'token ' || token_history.token_generation
                || ' counts as replaced, the device is at ' || device.token_generation
            FROM token_history JOIN device ON device.id = device_id
            WHERE token_history.token_generation >= device.token_generation
            UNION ALL
            SELECT NULL::bigint, device_id, CASE
                WHEN device.id IS NULL THEN 'a token of it counts as proven, but there is no such device'
                ELSE 'token ' || proven_token.token_generation || ' counts as proven, the device is at '
                    || device.token_generation END
            FROM proven_token LEFT JOIN device ON device.id = device_id
            WHERE device.id IS NULL OR proven_token.token_generation > device.token_generation
            """),
        RowCheck(
            "badges", "a badge is never below 0",
            "SELECT NULL::bigint, id, 'its badge is ' || badge FROM device WHERE badge < 0"),
        RowCheck(
            "segments", "the size of a segment is the number of its members",
            """
            SELECT NULL::bigint, NULL::bigint, 'segment "' || name || '" counts ' || members || ' members and has ' || found
            FROM (
                SELECT name, members, (SELECT count(*) FROM segment_member WHERE segment_id = segment.id) AS found
                FROM segment WHERE kind = 0
            ) AS counted
            WHERE members <> found
            """),
        RowCheck(
            "belongings", "what belongs to a device or to a segment has one",
            """
            SELECT NULL::bigint, device_id, 'a ' || what || ' is its, but there is no such device' FROM (
                SELECT device_id, 'tag' AS what FROM tag UNION ALL SELECT device_id, 'membership' FROM segment_member
                UNION ALL SELECT device_id, 'token of before' FROM token_history
                UNION ALL SELECT device_id, 'registration' FROM token_heard
            ) AS belongings WHERE NOT EXISTS (SELECT 1 FROM device WHERE device.id = device_id)
            UNION ALL
            SELECT NULL::bigint, device_id, 'it is a member of segment ' || segment_id || ', which is not there'
            FROM segment_member WHERE NOT EXISTS (SELECT 1 FROM segment WHERE segment.id = segment_id)
            """),
    ]

    /// The promises of runs, and of rows that must belong to one.
    static let runs = [
        RowCheck(
            "occurrences", "an occurrence of a campaign is one run",
            """
            SELECT min(id), NULL::bigint, 'its occurrence is also run ' || max(id)
            FROM run GROUP BY campaign, occurrence HAVING count(*) > 1
            """),
        RowCheck(
            "run_states", "a run is in a known state, and one that is over has nothing left to do",
            """
            SELECT id, NULL::bigint, what FROM (
                SELECT id, CASE
                    WHEN state NOT IN (\(SQLConstants.list(RunState.allCases))) THEN 'its state is "' || state || '"'
                    WHEN least(audience, pending, leased, accepted, rejected, unknown, suppressed) < 0
                        THEN 'a figure of its account is below 0'
                    WHEN state IN (\(SQLConstants.list(RunState.allCases.filter { !$0.isFinal })))
                        AND finished_at IS NOT NULL
                        THEN 'it is ' || state || ', and was over at ' || \(SQLConstants.moment("finished_at"))
                    WHEN state = '\(RunState.finished.rawValue)' AND NOT is_frozen
                        THEN 'it is finished, but its audience was never complete'
                    WHEN state = '\(RunState.finished.rawValue)' AND pending + leased > 0
                        THEN 'it is finished, with ' || (pending + leased) || ' deliveries left'
                    WHEN state = '\(RunState.finished.rawValue)' AND owner IS NOT NULL
                        THEN 'it is finished, but still held by ' || owner
                    -- What was cancelled is over once its owner has let go.
                    WHEN state IN (\(SQLConstants.list(RunState.allCases.filter(\.isFinal))))
                        AND owner IS NULL AND finished_at IS NULL AND pending + leased = 0
                        THEN 'it is over, and nothing says since when'
                    WHEN (owner IS NOT NULL) <> EXISTS (
                        SELECT 1 FROM run_sender WHERE run_id = run.id AND run_sender.owner = run.owner)
                        THEN 'who sends it is not who may lease of it'
                END AS what
                FROM run
            ) AS looked WHERE what IS NOT NULL
            """),
        RowCheck(
            "recorded_states", "a run is in the state that the record of events says it came into last",
            """
            SELECT run.id, NULL::bigint, 'it is ' || run.state || ', and the last on record is ' || last.kind
            FROM run JOIN (
                SELECT DISTINCT ON (run_id) run_id, kind FROM event
                WHERE kind IN (\(SQLConstants.list(RecordedState.all.map(\.kind.rawValue)))) ORDER BY run_id, id DESC
            ) AS last ON last.run_id = run.id
            WHERE run.state <> CASE last.kind
                \(RecordedState.all.map { "WHEN '\($0.kind.rawValue)' THEN '\($0.state.rawValue)'" }.joined(separator: " "))
            END
            """),
        RowCheck(
            "orphans", "every row of a run belongs to one",
            """
            SELECT run_id, NULL::bigint, 'it has a ' || what || ', but there is no such run' FROM (
                SELECT run_id, 'lease' AS what FROM lease UNION SELECT run_id, 'timeline' FROM timeline
                UNION SELECT run_id, 'chunk' FROM chunk UNION SELECT run_id, 'sender' FROM run_sender
                UNION SELECT run_id, 'event' FROM event WHERE run_id IS NOT NULL
                UNION SELECT run_id, 'slot in the silent ledger' FROM silent_ledger
                UNION SELECT substr(relname::text, 10)::bigint, 'table of deliveries' FROM pg_class
                    WHERE relname ~ '^delivery_[0-9]+$' AND relkind = 'r'
                        AND relnamespace = current_schema()::regnamespace
            ) AS belongings WHERE run_id NOT IN (SELECT id FROM run)
            UNION ALL
            SELECT id, NULL::bigint, 'its outcomes were pruned, and it is not over'
            FROM run WHERE outcomes_pruned_at IS NOT NULL AND finished_at IS NULL
            """),
    ]

    /// What each delivery of a run promises on its own.
    ///
    /// - Parameter time: the ledger's times are by that clock.
    static func deliveries(of table: DeliveryTable, time: StoreTime) -> [RowCheck] {
        // When a run was made is by the clock of whoever made it.
        let isBeforeRun =
            switch time {
            case .caller: "reserved_at < created_at - 60000"
            case .database: "false"
            }
        return [
            RowCheck(
                "deliveries", "every end state is one that APNs' answer, or a reason of ours, accounts for",
                """
                SELECT run_id, device_id, what FROM (
                    SELECT run_id, device_id, CASE
                        WHEN doubts > attempt OR attempt < 0 OR doubts < 0
                            THEN 'it counts ' || doubts || ' lost answers of ' || attempt || ' requests'
                        WHEN excused > attempt - doubts THEN 'it excuses ' || excused || ' of ' || attempt || ' requests'
                        WHEN leases > 0 AND attempt > leases
                            THEN 'it counts ' || attempt || ' requests in ' || leases || ' leases'
                        WHEN state = \(DeliveryState.accepted.code) AND status <> 200
                            THEN 'it is accepted with status ' || status
                        WHEN state IN (\(SQLConstants.list([.accepted, .rejected, .unknown] as [DeliveryState])))
                            AND attempt = 0 THEN 'it has an outcome without a request'
                        WHEN state = \(DeliveryState.suppressed.code)
                            AND coalesce(reason, '') NOT IN (\(SQLConstants.list(SuppressionReason.allCases.map(\.rawValue))))
                            THEN 'it is suppressed for "' || coalesce(reason, '') || '", which is no reason'
                        WHEN state <> \(DeliveryState.pending.code) AND not_before IS NOT NULL
                            THEN 'it has its end state, and still waits for a time'
                        WHEN device_id < 1 OR device_id > (SELECT last_value FROM device_id_seq)
                            THEN 'there never was such a device'
                    END AS what
                    FROM \(table.name)
                ) AS looked WHERE what IS NOT NULL
                """),
            RowCheck(
                "proven_tokens", "a device that APNs took a push for has a proven token",
                """
                SELECT run_id, delivery.device_id, 'it is accepted with token ' || delivery.generation
                    || ' of the device, of which '
                    || coalesce('token ' || proven_token.token_generation, 'none') || ' is proven'
                FROM \(table.name) AS delivery JOIN device ON device.id = delivery.device_id
                LEFT JOIN proven_token ON proven_token.device_id = delivery.device_id
                WHERE delivery.state = \(DeliveryState.accepted.code)
                    AND coalesce(proven_token.token_generation, 0) < delivery.generation
                """),
            RowCheck(
                "ledger_times", "a slot of the silent budget is as old as its push",
                """
                -- A minute for what clocks differ by without being set; where one was set back, nothing can be said. An
                -- answer that comes after others have taken over makes a slot last longer than its outcome says, and is
                -- written down nowhere else: of a run that was recovered only slots that end too early are found.
                SELECT silent_ledger.run_id, silent_ledger.device_id,
                    'its slot lasts from ' || \(SQLConstants.moment("reserved_at")) || ' to '
                    || \(SQLConstants.moment("settled_at")) || ', its outcome came at '
                    || \(SQLConstants.moment("changed_at")) || ', its run was made at '
                    || \(SQLConstants.moment("created_at"))
                FROM silent_ledger JOIN \(table.name) AS delivery USING (run_id, device_id) JOIN run ON run.id = run_id
                WHERE lease_number = leases AND settled_at IS NOT NULL
                    AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
                    AND (settled_at < changed_at - 60000 OR reserved_at > changed_at + 60000
                        OR reserved_at > settled_at + 60000 OR \(isBeforeRun)
                        OR (settled_at > changed_at + 60000 AND NOT EXISTS (
                            SELECT 1 FROM event
                            WHERE event.run_id = silent_ledger.run_id AND kind = '\(EventKind.runRecovered.rawValue)')))
                    AND NOT EXISTS (SELECT 1 FROM clock_step WHERE shown_at < expected_at)
                """),
            RowCheck(
                "budget_slots", "a slot of the silent budget is held by a push that is on its way, or may have arrived",
                """
                -- Negative numbers are inherited from a merged device.
                SELECT run_id, device_id, 'it holds ' || slots || ' slots of the silent budget after '
                    || (attempt - excused) || ' requests that may have arrived'
                FROM (
                    SELECT run_id, device_id, count(*) AS slots FROM silent_ledger
                    WHERE settled_at IS NOT NULL AND lease_number > 0 AND run_id = \(table.run)
                    GROUP BY run_id, device_id
                ) AS held JOIN \(table.name) AS delivery USING (run_id, device_id)
                WHERE slots > attempt - excused
                """),
        ]
    }
}
