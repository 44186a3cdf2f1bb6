import Model
import Store

/// A promise that one statement checks. It selects `run`, `device` and `what` of each row that breaks the promise.
struct RowCheck<Session: SQLSession>: Sendable {
    let name: String
    let promise: String
    private let sql: String

    init(_ name: String, _ promise: String, _ sql: String) {
        self.name = name
        self.promise = promise
        self.sql = sql
    }

    /// Finds faults. Beyond `faultsMax` it only counts them.
    func find(_ db: Session, faultsMax: Int) throws -> Verification.Check {
        var faults: [StoreFault] = []
        var count = 0
        try db.each(.once(sql), values: []) { row in
            count += 1
            guard count <= faultsMax else { return }
            faults.append(StoreFault(run: try row.int64OrNil(0), device: try row.int64OrNil(1), try row.text(2)))
        }
        return Verification.Check(name, promise, faults: faults, count: count)
    }

    private static var dialect: SQLDialect { Session.dialect }
    private static var none: String { "CAST(NULL AS bigint)" }
    /// The hint to read SQLite's rows without an index. A damaged index could hide the faults that it should have
    /// prevented.
    private static var byRow: String { dialect.hint("NOT INDEXED") }
}

extension RowCheck {
    /// The promises of devices, their tokens and their segments.
    static var devices: [RowCheck] {
        [
            RowCheck(
                "tokens", "a token of one topic and environment belongs to one device",
                """
                SELECT \(none), min(id), 'its token is also held by ' || (count(*) - 1)
                    || ' other device(s), the last is ' || max(id)
                FROM device \(byRow) GROUP BY token, environment, topic_id HAVING count(*) > 1
                """),
            RowCheck(
                "installations", "every installation has at most one device per topic",
                """
                SELECT \(none), min(id), 'its installation is also ' || (count(*) - 1)
                    || ' other device(s), the last is ' || max(id)
                FROM device \(byRow) WHERE installation_id IS NOT NULL
                GROUP BY installation_id, topic_id HAVING count(*) > 1
                """),
            RowCheck(
                "device_status",
                "no device is suspended or gone because of a response older than its last registration",
                """
                SELECT \(none), id, CASE
                    WHEN status_at IS NULL THEN 'the device is not active, but the time of that is missing'
                    ELSE 'the device was registered at ' || \(dialect.moment("registered_at")) || ', after the '
                        || coalesce(status_reason, 'response') || ' of ' || \(dialect.moment("status_at"))
                        || ' that suspended or removed it' END
                FROM device \(byRow)
                WHERE status <> \(DeviceStatus.active.code) AND (status_at IS NULL OR registered_at > status_at)
                """),
            RowCheck(
                "token_history", "earlier and proven tokens are older than the device's token, or the same",
                """
                SELECT \(none), device_id, 'token ' || token_history.token_generation
                    || ' is marked replaced, but the device is at ' || device.token_generation
                FROM token_history JOIN device ON device.id = device_id
                WHERE token_history.token_generation >= device.token_generation
                UNION ALL
                SELECT \(none), device_id, CASE
                    WHEN device.id IS NULL THEN 'a token of the device is marked proven, but the device does not exist'
                    ELSE 'token ' || proven_token.token_generation || ' is marked proven, but the device is at '
                        || device.token_generation END
                FROM proven_token LEFT JOIN device ON device.id = device_id
                WHERE device.id IS NULL OR proven_token.token_generation > device.token_generation
                UNION ALL
                SELECT \(none), \(ProvenTokens.firstBeyond("latest.id")),
                    'a token of the device is marked proven, but the device never existed'
                FROM proven_first, (SELECT coalesce(\(dialect.lastDevice), 0) AS id) AS latest
                WHERE \(ProvenTokens.isBeyond("latest.id"))
                """),
            RowCheck(
                "badges", "a badge is never below 0",
                "SELECT \(none), id, 'its badge is ' || badge FROM device \(byRow) WHERE badge < 0"),
            RowCheck(
                "segments", "the size of a segment is the number of its members",
                """
                SELECT \(none), \(none), 'segment "' || name || '" counts ' || members || ' members and has ' || found
                FROM (
                    SELECT name, members, (SELECT count(*) FROM segment_member WHERE segment_id = segment.id) AS found
                    FROM segment WHERE kind = \(StoredSegmentKind.static.rawValue)
                ) AS counted
                WHERE members <> found
                """),
        ] + (dialect == .sqlite ? [] : [belongings])
    }

    /// A check that only PostgreSQL needs, because on SQLite foreign keys enforce it.
    private static var belongings: RowCheck {
        RowCheck(
            "belongings", "every row that names a device or a segment belongs to an existing one",
            """
            SELECT \(none), device_id, 'a ' || what || ' belongs to the device, but the device does not exist' FROM (
                SELECT device_id, 'tag' AS what FROM tag UNION ALL SELECT device_id, 'membership' FROM segment_member
                UNION ALL SELECT device_id, 'former token' FROM token_history
                UNION ALL SELECT device_id, 'registration' FROM token_heard
            ) AS belongings WHERE NOT EXISTS (SELECT 1 FROM device WHERE device.id = device_id)
            UNION ALL
            SELECT \(none), device_id, 'it is a member of segment ' || segment_id || ', which does not exist'
            FROM segment_member WHERE NOT EXISTS (SELECT 1 FROM segment WHERE segment.id = segment_id)
            """)
    }

    /// The promises of runs, and of rows that must belong to one.
    static var runs: [RowCheck] {
        [
            RowCheck(
                "occurrences", "every occurrence of a campaign has at most one run",
                """
                SELECT min(id), \(none), 'its occurrence is also run ' || max(id)
                FROM run \(byRow) GROUP BY campaign, occurrence HAVING count(*) > 1
                """),
            RowCheck(
                "run_states", "every run is in a known state, and a finished run has no open deliveries",
                """
                SELECT id, \(none), what FROM (
                    SELECT id, CASE
                        WHEN state NOT IN (\(SQLConstants.list(RunState.allCases))) THEN 'its state is "' || state || '"'
                        WHEN \(dialect.least)(audience, pending, leased, accepted, rejected, unknown, suppressed) < 0
                            THEN 'one of its counts is below 0'
                        WHEN state IN (\(SQLConstants.list(RunState.allCases.filter { !$0.isFinal })))
                            AND finished_at IS NOT NULL
                            THEN 'it is ' || state || ', and was over at ' || \(dialect.moment("finished_at"))
                        WHEN state = '\(RunState.finished.rawValue)' AND NOT is_frozen
                            THEN 'it is finished, but its audience was never complete'
                        WHEN state = '\(RunState.finished.rawValue)' AND pending + leased > 0
                            THEN 'it is finished, with ' || (pending + leased) || ' deliveries remaining'
                        WHEN state = '\(RunState.finished.rawValue)' AND owner IS NOT NULL
                            THEN 'it is finished, but still owned by ' || owner
                        -- What was cancelled is over once its owner has let go.
                        WHEN state IN (\(SQLConstants.list(RunState.allCases.filter(\.isFinal))))
                            AND owner IS NULL AND finished_at IS NULL AND pending + leased = 0
                            THEN 'it is over, but its end time is missing'
                        \(dialect.senderFault)
                    END AS what
                    FROM run
                ) AS looked WHERE what IS NOT NULL
                """),
            RowCheck(
                "recorded_states", "every run is in the last state that the audit log records for it",
                """
                SELECT run.id, \(none), 'it is ' || run.state || ', but the last recorded event is ' || last.kind
                FROM run JOIN event AS last ON last.id = (
                    SELECT max(id) FROM event
                    WHERE event.run_id = run.id AND kind IN (\(SQLConstants.list(RecordedState.all.map(\.kind.rawValue))))
                )
                WHERE run.state <> CASE last.kind
                    \(RecordedState.all.map { "WHEN '\($0.kind.rawValue)' THEN '\($0.state.rawValue)'" }.joined(separator: " "))
                END
                """),
            RowCheck(
                "orphans", "every row that names a run belongs to an existing run",
                """
                \(dialect.orphanStart)
                SELECT run_id, \(none), 'it has ' || what || ', but there is no such run' FROM (
                    SELECT run_id, 'a lease' AS what FROM lease UNION SELECT run_id, 'a timeline' FROM timeline
                    UNION SELECT run_id, 'an event' FROM event WHERE run_id IS NOT NULL
                    UNION SELECT run_id, 'a slot in the silent ledger' FROM silent_ledger
                    \(dialect.orphanRows)
                ) AS belongings WHERE run_id NOT IN (SELECT id FROM run)
                UNION ALL
                SELECT id, \(none), 'its outcomes were pruned, and it is not over'
                FROM run WHERE outcomes_pruned_at IS NOT NULL AND finished_at IS NULL
                """),
        ]
    }

    /// The promises of each single delivery.
    ///
    /// - Parameters:
    ///   - run: the run to check; `nil` for all runs, which is possible only on SQLite.
    ///   - goesByCallersClock: whether the ledger's times come from the same clock as the run's creation time.
    static func deliveries(of run: Int64?, goesByCallersClock: Bool) -> [RowCheck] {
        let table = dialect.deliveries(of: run ?? 0, as: "delivery")
        let isOfRun = run.map { "silent_ledger.run_id = \($0)" } ?? "true"
        return [
            RowCheck(
                "deliveries", "every final state matches an APNs response or a Fanfare reason",
                """
                SELECT run_id, device_id, what FROM (
                    SELECT run_id, device_id, CASE
                        WHEN doubts > attempt OR attempt < 0 OR doubts < 0
                            THEN 'it counts ' || doubts || ' lost responses of ' || attempt || ' requests'
                        -- Of runs that were over before leases were counted they stay 0.
                        WHEN excused > attempt - doubts THEN 'it excuses ' || excused || ' of ' || attempt || ' requests'
                        WHEN leases > 0 AND attempt > leases
                            THEN 'it counts ' || attempt || ' requests in ' || leases || ' leases'
                        WHEN state = \(DeliveryState.accepted.code) AND status <> 200
                            THEN 'it is accepted with status ' || status
                        WHEN state IN (\(SQLConstants.list([.accepted, .rejected, .unknown] as [DeliveryState])))
                            AND attempt = 0 THEN 'it has an outcome without a request'
                        WHEN state = \(DeliveryState.suppressed.code)
                            AND coalesce(reason, '') NOT IN (\(SQLConstants.list(SuppressionReason.allCases.map(\.rawValue))))
                            THEN 'it is suppressed for "' || coalesce(reason, '') || '", which is not a known reason'
                        WHEN state <> \(DeliveryState.pending.code) AND not_before IS NOT NULL
                            THEN 'it has its final state, but still waits for a time'
                        WHEN device_id < 1 OR device_id > \(dialect.lastDevice) THEN 'the device never existed'
                    END AS what
                    FROM \(table)
                ) AS looked WHERE what IS NOT NULL
                """),
            RowCheck(
                "proven_tokens", "every device for which APNs accepted a push has a proven token",
                """
                SELECT run_id, delivery.device_id, 'it is accepted with token ' || delivery.generation
                    || ' of the device, of which '
                    || coalesce('token ' || nullif(\(ProvenTokens.last(of: "delivery.device_id")), 0), 'none')
                    || ' is proven'
                FROM \(table) JOIN device ON device.id = delivery.device_id
                LEFT JOIN proven_token ON proven_token.device_id = delivery.device_id
                LEFT JOIN proven_first ON proven_first.block = \(ProvenTokens.block(of: "delivery.device_id"))
                WHERE delivery.state = \(DeliveryState.accepted.code)
                    AND \(ProvenTokens.last(of: "delivery.device_id")) < delivery.generation
                """),
            RowCheck(
                "ledger_times", "every slot of the silent budget has the time of its push",
                """
                -- A minute for what clocks differ by without being set; where one was set back, nothing can be said. An
                -- answer that comes after others have taken over makes a slot last longer than its outcome says, and is
                -- written down nowhere else: of a run that was recovered only slots that end too early are found.
                SELECT run.id, silent_ledger.device_id,
                    'its slot lasts from ' || \(dialect.moment("reserved_at")) || ' to '
                    || \(dialect.moment("settled_at")) || ', its outcome came at '
                    || \(dialect.moment("changed_at")) || ', its run was created at ' || \(dialect.moment("created_at"))
                FROM silent_ledger
                JOIN \(table) ON delivery.run_id = silent_ledger.run_id AND delivery.device_id = silent_ledger.device_id
                JOIN run ON run.id = silent_ledger.run_id
                WHERE \(isOfRun) AND lease_number = leases AND settled_at IS NOT NULL
                    AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
                    AND (settled_at < changed_at - 60000 OR reserved_at > changed_at + 60000
                        OR reserved_at > settled_at + 60000
                        OR \(goesByCallersClock ? "reserved_at < created_at - 60000" : "false")
                        OR (settled_at > changed_at + 60000 AND NOT EXISTS (
                            SELECT 1 FROM event
                            WHERE event.run_id = run.id AND kind = '\(EventKind.runRecovered.rawValue)')))
                    AND NOT EXISTS (SELECT 1 FROM clock_step WHERE shown_at < expected_at)
                """),
            RowCheck(
                "budget_slots",
                "every slot of the silent budget belongs to a push that is in flight or may have arrived",
                """
                -- Negative numbers are inherited from a merged device.
                SELECT held.run_id, held.device_id, 'it holds ' || slots || ' slots of the silent budget after '
                    || (attempt - excused) || ' requests that may have arrived'
                FROM (
                    SELECT run_id, device_id, count(*) AS slots FROM silent_ledger
                    WHERE settled_at IS NOT NULL AND lease_number > 0 AND \(isOfRun)
                    GROUP BY run_id, device_id
                ) AS held JOIN \(table) ON delivery.run_id = held.run_id AND delivery.device_id = held.device_id
                WHERE slots > attempt - excused
                """),
        ]
    }
}

/// The differences between the engines' structures.
extension SQLDialect {
    /// The highest id that a device ever had.
    fileprivate var lastDevice: String {
        word("(SELECT seq FROM sqlite_sequence WHERE name = 'device')", "(SELECT last_value FROM device_id_seq)")
    }

    /// One more case for the faults of a run.
    fileprivate var senderFault: String {
        word(
            "",
            """
            WHEN (owner IS NOT NULL) <> EXISTS (
                SELECT 1 FROM run_sender WHERE run_id = run.id AND run_sender.owner = run.owner)
                THEN 'the owner of the run is not registered as its sender'
            """)
    }

    /// A query for the rows of one engine that name a run, as `run_id` and `what`. On SQLite, it skips along the
    /// primary key from run to run, and does not read every delivery.
    fileprivate var orphanRows: String {
        word(
            "UNION SELECT id, 'deliveries' FROM named WHERE id IS NOT NULL",
            """
            UNION SELECT run_id, 'a chunk' FROM chunk UNION SELECT run_id, 'a sender' FROM run_sender
            UNION SELECT substr(relname::text, 10)::bigint, 'a table of deliveries' FROM pg_class
                WHERE relname ~ '^delivery_[0-9]+$' AND relkind = 'r'
                    AND relnamespace = current_schema()::regnamespace
            """)
    }

    fileprivate var orphanStart: String {
        word(
            """
            WITH RECURSIVE named (id) AS (
                SELECT min(run_id) FROM delivery
                UNION ALL
                SELECT (SELECT min(run_id) FROM delivery WHERE run_id > named.id) FROM named WHERE named.id IS NOT NULL
            )
            """, "")
    }
}
