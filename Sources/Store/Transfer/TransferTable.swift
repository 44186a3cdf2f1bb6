/// A table as it is copied from one store to another. Its name and its columns are the same in every store, and its
/// values are ``TransferValue``s.
package struct TransferTable: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case integer
        /// 0 or 1.
        case boolean
        case text
        case bytes
        /// A JSON object of texts, as ``StoredJSON/object(_:)`` writes it.
        case object
    }

    package struct Column: Hashable, Sendable {
        package let name: String
        package let kind: Kind
    }

    package let name: String
    /// The columns, the first of which are the key. The key identifies a row, and rows are read in its order.
    package let columns: [Column]
    package let keyColumns: Int
    /// The number of rows per read and per write.
    package let batchRows: Int
    /// The maximum number of partitions that a batch touches. The table has one partition for each value of the first
    /// column.
    package let partsMax: Int?

    private init(
        _ name: String, key: KeyValuePairs<String, Kind>, _ others: KeyValuePairs<String, Kind> = [:],
        batchRows: Int = 5_000, partsMax: Int? = nil
    ) {
        self.name = name
        columns = key.map { Column(name: $0.key, kind: $0.value) } + others.map { Column(name: $0.key, kind: $0.value) }
        keyColumns = key.count
        self.batchRows = batchRows
        self.partsMax = partsMax
    }

    package var key: ArraySlice<Column> { columns.prefix(keyColumns) }

    package func key(of row: [TransferValue]) -> [TransferValue] { Array(row.prefix(keyColumns)) }

    /// Returns the first of these rows, as many as one batch may hold.
    package func batch(_ rows: [[TransferValue]]) -> ArraySlice<[TransferValue]> {
        guard let partsMax else { return rows[...] }
        var parts = 0
        var last: TransferValue?
        return rows.prefix { row in
            if row.first != last { parts += 1 }
            last = row.first
            return parts <= partsMax
        }
    }
}

extension TransferTable {
    /// All tables in the order in which they are copied: referenced tables come first. A new table comes last, because
    /// a move that is under way records how many tables it has copied.
    ///
    /// The copy leaves out:
    /// - data of a machine or a process: `clock_reading`, `pace_bucket`, `daemon`, `sender`, `run_sender` and
    ///   `endpoint_hold` (the next sender tries such an endpoint immediately)
    /// - `lease`, which is empty while a store is moved, and `waiting_feedback` and `waiting_merge`, which are emptied
    ///   before
    /// - data that the receiving store rebuilds: the hash chain over the events, the chunks of waiting deliveries, the
    ///   rows that lock a silent budget, and every index
    package static let all = [
        topic, device, provenToken, tokenHeard, tokenHistory, tag, segment, segmentMember, run, deliveryProfile,
        delivery,
        runStage,
        runStageGroup, foundGone,
        outcomeSummary, outcomeSlice, timeline, silentLedger, capLedger, capRule, event, clockStep, scheduleMark, feed,
        feedItem,
        webhook, webhookMessage, accessToken, webSession, providerToken, approval, approvalSignature, pendingChange,
        provenFirst, savedPlan, occurrenceValues, feedbackEvent, feedbackCount, feedbackRemoval,
        installationSecret,
    ]

    /// The tables whose ids a store assigns. Each id is assigned only once.
    package static let numbered = [
        "topic", "device", "segment", "run", "outcome_summary", "clock_step", "feed_item", "webhook_message",
        "access_token", "approval", "pending_change", "saved_plan", "lease", "delivery_profile",
    ]

    package static let run = TransferTable(
        "run", key: ["id": .integer],
        [
            "campaign": .text, "occurrence": .text, "state": .text, "state_reason": .text, "paused_by": .text,
            "halt": .text, "is_frozen": .boolean, "is_test": .boolean, "is_refused": .boolean, "created_at": .integer,
            "started_at": .integer, "finished_at": .integer, "owner": .text, "heartbeat_at": .integer,
            "audience": .integer, "pending": .integer, "leased": .integer, "accepted": .integer, "rejected": .integer,
            "unknown": .integer, "suppressed": .integer, "devices_gone": .integer, "devices_suspended": .integer,
            "requests": .integer, "possible_duplicates": .integer, "outcomes_digest": .integer,
            "outcomes_pruned_at": .integer, "holdout_seed": .integer, "variant_seed": .integer,
            "reach": .integer, "reach_most": .integer, "reach_bound": .integer, "signed_segments": .text,
            "definition_hash": .integer,
            "definition": .text, "coalesce_key": .text, "has_timeline": .boolean,
            "capped_since": .integer, "halted_at": .integer, "restored": .text,
        ],
        // Each row holds a whole campaign.
        batchRows: 100)

    /// Runs whose outcomes were pruned have no rows here, even if some rows still wait to be deleted.
    package static let delivery = TransferTable(
        "delivery", key: ["run_id": .integer, "device_id": .integer],
        [
            "environment": .integer, "state": .integer, "attempt": .integer, "doubts": .integer, "excused": .integer,
            "leases": .integer, "generation": .integer, "variant": .integer, "wave": .integer, "not_before": .integer,
            "locale_index": .integer, "stage": .integer, "held_for": .text, "held_until": .integer, "status": .integer,
            "reason": .text, "changed_at": .integer, "profile": .integer,
        ], partsMax: 200)

    private static let deliveryProfile = TransferTable(
        "delivery_profile", key: ["id": .integer],
        ["locale": .text, "app_version": .text, "time_zone": .text, "country": .text])

    private static let runStage = TransferTable(
        "run_stage", key: ["run_id": .integer, "stage": .integer],
        [
            "size": .integer, "opened_at": .integer, "answered": .integer, "failed": .integer, "gone": .integer,
            "unknown": .integer, "gone_tolerated": .integer, "decision": .text, "after_go": .text,
            "approved_by": .text, "released_by": .text,
        ])

    private static let runStageGroup = TransferTable(
        "run_stage_group",
        key: ["run_id": .integer, "stage": .integer, "environment": .integer, "locale_index": .integer],
        ["answered": .integer, "failed": .integer, "gone": .integer, "unknown": .integer])

    private static let foundGone = TransferTable(
        "found_gone", key: ["run_id": .integer, "device_id": .integer],
        ["generation": .integer, "since": .integer, "reason": .text])

    /// The copy leaves out the hash, which each store computes from the rows in its own way.
    package static let event = TransferTable(
        "event", key: ["id": .integer],
        [
            "at": .integer, "kind": .text, "run_id": .integer, "actor": .text, "detail": .text, "files": .text,
            "uid": .integer, "user": .text, "command": .text, "origin": .text,
        ], batchRows: 500)

    private static let topic = TransferTable("topic", key: ["id": .integer], ["name": .text])

    private static let device = TransferTable(
        "device", key: ["id": .integer],
        [
            "topic_id": .integer, "environment": .integer, "status": .integer, "alerts_allowed": .boolean,
            "token_generation": .integer, "token": .bytes, "locale": .text, "badge": .integer,
            "registered_at": .integer, "last_seen_at": .integer, "status_reason": .text, "status_at": .integer,
            "installation_id": .text, "user_id": .text, "time_zone": .text, "country": .text, "app_version": .text,
            "app_version_key": .text, "os_version": .text, "os_version_key": .text, "model": .text,
            "attributes": .object,
        ])

    private static let provenToken = TransferTable(
        "proven_token", key: ["device_id": .integer], ["token_generation": .integer])

    private static let provenFirst = TransferTable("proven_first", key: ["block": .integer], ["bits": .integer])

    private static let tokenHeard = TransferTable(
        "token_heard", key: ["device_id": .integer], ["heard_at": .integer])

    private static let tokenHistory = TransferTable(
        "token_history", key: ["device_id": .integer, "token_generation": .integer],
        ["token": .bytes, "environment": .integer, "replaced_at": .integer])

    private static let tag = TransferTable("tag", key: ["device_id": .integer, "name": .text])

    private static let segment = TransferTable(
        "segment", key: ["id": .integer],
        [
            "name": .text, "kind": .integer, "source": .text, "expression": .text, "members": .integer,
            "updated_at": .integer, "members_digest": .text,
        ])

    private static let segmentMember = TransferTable(
        "segment_member", key: ["segment_id": .integer, "device_id": .integer])

    private static let outcomeSummary = TransferTable(
        "outcome_summary", key: ["id": .integer],
        [
            "run_id": .integer, "environment": .integer, "variant": .integer, "locale_index": .integer,
            "state": .integer, "status": .integer, "reason": .text, "deliveries": .integer,
        ])

    private static let outcomeSlice = TransferTable(
        "outcome_slice",
        key: ["run_id": .integer, "dimension": .text, "value": .text, "state": .integer],
        ["deliveries": .integer])

    private static let timeline = TransferTable(
        "timeline", key: ["run_id": .integer, "slot": .integer],
        [
            "accepted": .integer, "rejected": .integer, "unknown": .integer, "suppressed": .integer,
            "retried": .integer, "reopened": .integer, "latencies": .bytes,
        ])

    private static let silentLedger = TransferTable(
        "silent_ledger", key: ["device_id": .integer, "run_id": .integer, "lease_number": .integer],
        ["reserved_at": .integer, "settled_at": .integer])

    private static let capLedger = TransferTable(
        "cap_ledger", key: ["kind": .integer, "id": .integer], ["latest": .integer, "pushes": .bytes])

    private static let capRule = TransferTable(
        "cap_rule", key: ["code": .integer], ["topic": .text, "class": .text, "caps": .text])

    private static let clockStep = TransferTable(
        "clock_step", key: ["id": .integer],
        ["expected_at": .integer, "shown_at": .integer, "is_told": .boolean])

    private static let scheduleMark = TransferTable(
        "schedule_mark", key: ["campaign": .text], ["schedule_hash": .integer, "since": .integer])

    private static let feed = TransferTable(
        "feed", key: ["campaign": .text],
        [
            "url": .text, "etag": .text, "last_modified": .text, "polled_at": .integer, "is_read": .boolean,
            "failures": .integer, "problem": .text,
        ])

    private static let feedItem = TransferTable(
        "feed_item", key: ["id": .integer], ["campaign": .text, "item": .text, "seen_at": .integer])

    private static let webhook = TransferTable("webhook", key: ["url": .text, "event": .text])

    private static let webhookMessage = TransferTable(
        "webhook_message", key: ["id": .integer],
        [
            "event_id": .integer, "url": .text, "run_id": .integer, "state": .text, "reason": .text, "at": .integer,
            "attempts": .integer, "next_at": .integer, "problem": .text, "approval_id": .integer,
        ])

    private static let accessToken = TransferTable(
        "access_token", key: ["id": .integer],
        [
            "secret_hash": .text, "name": .text, "role": .text, "topic": .text, "created_at": .integer,
            "created_by": .text, "expires_at": .integer, "revoked_at": .integer, "last_used_at": .integer,
            "is_invitation": .boolean,
        ])

    private static let webSession = TransferTable(
        "web_session", key: ["secret_hash": .text],
        [
            "token_id": .integer, "name": .text, "role": .text, "topic": .text, "created_at": .integer,
            "expires_at": .integer, "ends_at": .integer,
        ])

    private static let approval = TransferTable(
        "approval", key: ["id": .integer],
        [
            "campaign": .text, "occurrence": .text, "plan": .text, "digest": .text, "reach": .integer,
            "needs": .integer, "authors": .text, "asked_by": .text, "asked_at": .integer, "state": .text,
            "run_id": .integer, "definition": .text, "evidence": .text, "note": .text,
        ],
        // Each row holds a whole campaign.
        batchRows: 100)

    private static let approvalSignature = TransferTable(
        "approval_signature", key: ["approval_id": .integer, "identity": .text],
        [
            "name": .text, "signed_at": .integer, "event_id": .integer, "reach": .integer, "is_rejection": .boolean,
            "reason": .text, "uid": .integer,
        ])

    private static let savedPlan = TransferTable(
        "saved_plan", key: ["id": .integer],
        [
            "file": .text, "occurrence": .text, "is_scheduled": .boolean, "token": .text, "digest": .text,
            "definition": .text, "shown": .text, "made_at": .integer, "made_by": .text,
            "maker": .text,
        ],
        // Each row holds a whole campaign.
        batchRows: 100)

    private static let occurrenceValues = TransferTable(
        "occurrence_values", key: ["campaign": .text, "occurrence": .text],
        [
            "starts_at": .integer, "variables": .text, "given_at": .integer, "given_by": .text, "giver": .text,
        ])

    private static let feedbackEvent = TransferTable(
        "feedback_event",
        key: [
            "device_id": .integer, "run_id": .integer, "kind": .integer, "name": .text, "id_high": .integer,
            "id_low": .integer,
        ],
        ["value_micros": .integer, "happened_at": .integer, "received_at": .integer])

    private static let feedbackCount = TransferTable(
        "feedback_count",
        key: [
            "run_id": .integer, "kind": .integer, "name": .text, "variant": .integer, "locale_index": .integer,
            "minute": .integer,
        ], ["events": .integer, "value_micros": .integer])

    private static let feedbackRemoval = TransferTable(
        "feedback_removal", key: ["id": .integer],
        ["received_until": .integer, "received_before": .integer, "removed_at": .integer])

    private static let installationSecret = TransferTable(
        "installation_secret", key: ["device_id": .integer], ["secret_hash": .bytes, "made_at": .integer])

    private static let pendingChange = TransferTable(
        "pending_change", key: ["id": .integer],
        [
            "kind": .text, "name": .text, "text": .text, "hash": .text, "base": .text, "author": .text, "uid": .integer,
            "account": .text, "origin": .text, "asked_at": .integer,
        ],
        // Each row holds a whole file.
        batchRows: 50)

    /// The tokens are copied so that the receiving store signs no second one, which APNs would refuse for 20 minutes.
    private static let providerToken = TransferTable(
        "provider_token", key: ["team_id": .text, "key_id": .text, "fingerprint": .text],
        [
            "token": .text, "signed_at": .integer, "held_until": .integer, "boot_id": .text, "signed_after": .integer,
        ])
}
