import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func requestApproval(
        _ request: ApprovalRequest, isAnew: Bool, by actor: Actor
    ) async throws -> ApprovalRecord {
        try await writeDurably { db in try ApprovalRows(db).request(request, isAnew: isAnew, by: actor) }
    }

    package func approvals(in states: Set<ApprovalRequest.State>?, limit: Int) async throws -> [ApprovalRecord] {
        let words = StoredJSON.array((states ?? Set(ApprovalRequest.State.allCases)).map(\.rawValue))
        return try await read(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                "state IN (SELECT value FROM json_each(:states)) ORDER BY id DESC LIMIT :limit",
                ["states": words, "limit": limit]
            ).map(rows.record)
        }
    }

    package func approval(campaign: String, occurrence: String, digest: String) async throws -> ApprovalRecord? {
        try await read(.short) { db in try ApprovalRows(db).latest(campaign, occurrence, digest) }
    }

    package func openApprovals(startingWith text: String, limit: Int) async throws -> [ApprovalRecord] {
        try await read(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                """
                state = :open AND substr(digest, 1, length(:text)) = :text
                ORDER BY id DESC LIMIT :limit
                """, ["open": ApprovalRequest.State.open.rawValue, "text": text, "limit": limit]
            ).map(rows.record)
        }
    }

    package func latestSignedRun(campaign: String) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(
                db,
                """
                WHERE id IN (
                    SELECT run_id FROM approval
                    WHERE approval.campaign = :campaign AND EXISTS (
                        SELECT 1 FROM run AS made WHERE made.id = run_id AND made.state = :finished
                    ) AND EXISTS (SELECT 1 FROM event WHERE event.run_id = approval.run_id AND kind = :signed)
                ) ORDER BY id DESC LIMIT :limit
                """,
                [
                    "campaign": campaign, "finished": RunState.finished.rawValue,
                    "signed": EventKind.approvalUsed.rawValue,
                ])
        }
    }

    package func awaitedApprovals(rejectedSince: Timestamp, limit: Int) async throws -> [ApprovalRecord] {
        try await read(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                """
                occurrence <> '' AND (state = :open OR state = :rejected AND EXISTS (
                    SELECT 1 FROM approval_signature
                    WHERE approval_id = approval.id AND is_rejection AND signed_at >= :since
                )) AND NOT EXISTS (
                    SELECT 1 FROM run WHERE run.campaign = approval.campaign AND run.occurrence = approval.occurrence
                ) ORDER BY id DESC LIMIT :limit
                """,
                [
                    "open": ApprovalRequest.State.open.rawValue, "rejected": ApprovalRequest.State.rejected.rawValue,
                    "since": rejectedSince.milliseconds, "limit": limit,
                ]
            ).map(rows.record)
        }
    }

    package func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord {
        try await writeDurably { db in try ApprovalRows(db).sign(request, signature, by: actor, now: now) }
    }

    package func lapseApprovals(campaign: String, occurrence: String, now: Timestamp) async throws {
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE approval SET state = :lapsed
                    WHERE campaign = :campaign AND occurrence = :occurrence AND state = :open
                    """,
                arguments: [
                    "campaign": campaign, "occurrence": occurrence,
                    "lapsed": ApprovalRequest.State.lapsed.rawValue, "open": ApprovalRequest.State.open.rawValue,
                ])
        }
    }

    package func lapseApprovals(before moment: Timestamp) async throws {
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE approval SET state = :lapsed
                    WHERE state = :open AND CASE
                        WHEN occurrence = '' THEN asked_at < :moment AND NOT EXISTS (
                            SELECT 1 FROM approval_signature WHERE approval_id = approval.id AND signed_at >= :moment)
                        ELSE EXISTS (
                            SELECT 1 FROM run
                            WHERE run.campaign = approval.campaign AND run.occurrence = approval.occurrence)
                        END
                    """,
                arguments: [
                    "moment": moment.milliseconds, "lapsed": ApprovalRequest.State.lapsed.rawValue,
                    "open": ApprovalRequest.State.open.rawValue,
                ])
        }
    }

    package func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        return try await writeDurably { db in
            let made = try Self.insertRun(
                db, definition.campaign, text, occurrence: occurrence, isTest: false, now: now, by: actor,
                notes: notes, files: files)
            guard made.isNew else { return made }
            let evidence = try ApprovalRows(db).use(demand, run: made.run.id, now: now, by: actor)
            let held = ReachLimits.signed(limits, demand, evidence)
            return (try Self.weigh(db, made.run, volume, held, now: now, by: actor), true)
        }
    }

    /// Of every run that was made with an approval.
    static func approvalFaults(_ db: Database) throws -> Verification.Check {
        let rows = ApprovalRows(db)
        let used = try rows.fetch("evidence IS NOT NULL ORDER BY id", [:])
        let faults = try used.flatMap { request in
            let json = try String.fetchOne(
                db, sql: "SELECT evidence FROM approval WHERE id = :id", arguments: ["id": request.id])
            return ApprovalCheck.faults(
                run: request.run, try StoredJSON.value(json ?? ""), try rows.record(request))
        }
        return Verification.Check(ApprovalCheck.name, ApprovalCheck.promise, faults: faults, compared: used.count)
    }
}

/// Rows of `approval` and `approval_signature`.
private struct ApprovalRows {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// `condition` is one of our own texts, its values named parameters.
    func fetch(_ condition: String, _ arguments: StatementArguments) throws -> [ApprovalRequest] {
        try rows(condition, arguments).map(Self.request)
    }

    /// The same without those that cannot be read.
    func list(_ condition: String, _ arguments: StatementArguments) throws -> [ApprovalRequest] {
        try ReadableRows.of(rows(condition, arguments), Self.request)
    }

    private func rows(_ condition: String, _ arguments: StatementArguments) throws -> [Row] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT id, definition, occurrence, plan, digest, reach, needs, authors, asked_by, asked_at, state,
                        run_id
                    FROM approval WHERE \(condition)
                    """), arguments: arguments)
    }

    func record(_ request: ApprovalRequest) throws -> ApprovalRecord {
        let signatures = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    -- Only of one that waits does it matter what the clock has shown since.
                    SELECT identity, name, signed_at, reach, is_rejection, reason, CASE WHEN :waits THEN (
                        -- Where the clock was set back since, also what it showed before.
                        SELECT max(at, coalesce((
                            SELECT max(expected_at) FROM clock_step WHERE shown_at IN (
                                SELECT at FROM event WHERE event.id >= event_id AND kind = :stepped)), at))
                        FROM (SELECT max(at) AS at FROM event WHERE event.id >= event_id)) ELSE signed_at END, uid
                    FROM approval_signature WHERE approval_id = :id ORDER BY event_id
                    """),
            arguments: [
                "id": request.id, "stepped": EventKind.clockStepped.rawValue, "waits": request.state == .open,
            ]
        ).map { row in
            ApprovalSignature(
                identity: row[0], name: row[1], signedAt: Timestamp(milliseconds: row[2]),
                seenAt: Timestamp(stored: row[6]), reach: row[3], isRejection: row[4], reason: row[5], uid: row[7])
        }
        return ApprovalRecord(request, signatures)
    }

    /// The latest of a plan.
    func latest(_ campaign: String, _ occurrence: String, _ digest: String) throws -> ApprovalRecord? {
        try fetch(
            "campaign = :campaign AND occurrence = :occurrence AND digest = :digest ORDER BY id DESC LIMIT 1",
            ["campaign": campaign, "occurrence": occurrence, "digest": digest]
        ).first.map(record)
    }

    private func latest(_ request: ApprovalRequest) throws -> ApprovalRecord? {
        try latest(request.campaign, request.occurrence, request.digest)
    }

    func request(_ request: ApprovalRequest, isAnew: Bool, by actor: Actor) throws -> ApprovalRecord {
        if let known = try latest(request) {
            if known.request.state == .open { return try recount(known, as: request) }
            if known.request.state == .rejected, !isAnew { return known }
        }
        if !request.occurrence.isEmpty {
            try db.execute(
                sql: """
                    UPDATE approval SET state = :replaced
                    WHERE campaign = :campaign AND occurrence = :occurrence AND state = :open
                    """,
                arguments: [
                    "campaign": request.campaign, "occurrence": request.occurrence,
                    "replaced": ApprovalRequest.State.replaced.rawValue, "open": ApprovalRequest.State.open.rawValue,
                ])
        }
        let made = try insert(request)
        try EventLog.record(
            db, kind: .approvalRequested, run: nil, actor: actor, detail: made.words, now: request.askedAt)
        return ApprovalRecord(made, [])
    }

    private func recount(_ known: ApprovalRecord, as request: ApprovalRequest) throws -> ApprovalRecord {
        var record = known
        record.request.take(request)
        try db.execute(
            sql: "UPDATE approval SET reach = :reach, needs = :needs, authors = :authors, plan = :plan WHERE id = :id",
            arguments: [
                "id": record.request.id, "reach": record.request.reach, "needs": record.request.needs,
                "authors": StoredJSON.array(record.request.authors), "plan": record.request.plan,
            ])
        return record
    }

    private func insert(_ request: ApprovalRequest) throws -> ApprovalRequest {
        try db.execute(
            sql: """
                INSERT INTO approval
                    (campaign, occurrence, plan, digest, reach, needs, authors, asked_by, asked_at, state, definition)
                VALUES (
                    :campaign, :occurrence, :plan, :digest, :reach, :needs, :authors, :asked_by, :asked_at, :state,
                    :definition
                )
                """,
            arguments: [
                "campaign": request.campaign, "occurrence": request.occurrence, "plan": request.plan,
                "digest": request.digest, "reach": request.reach, "needs": request.needs,
                "authors": StoredJSON.array(request.authors), "asked_by": request.askedBy,
                "asked_at": request.askedAt.milliseconds, "state": ApprovalRequest.State.open.rawValue,
                "definition": try RunDefinitionText(request.definition).json,
            ])
        var made = request
        made.id = db.lastInsertedRowID
        return made
    }

    func sign(
        _ id: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp
    ) throws -> ApprovalRecord {
        guard var request = try fetch("id = :id", ["id": id]).first else { throw StoreError.approvalClosed(.lapsed) }
        guard request.state == .open else { throw StoreError.approvalClosed(request.state) }
        try EventLog.record(
            db, kind: signature.isRejection ? .planRejected : .planSigned, run: nil, actor: actor,
            detail: request.words(of: signature, by: actor), now: now)
        try db.execute(
            sql: """
                INSERT INTO approval_signature
                    (approval_id, identity, name, signed_at, event_id, reach, is_rejection, reason, uid)
                VALUES (
                    :id, :identity, :name, :signed_at, (SELECT max(id) FROM event), :reach, :rejection, :reason, :uid
                )
                ON CONFLICT (approval_id, identity) DO UPDATE SET
                    name = excluded.name, signed_at = excluded.signed_at, reach = excluded.reach,
                    event_id = CASE signed_at WHEN excluded.signed_at THEN event_id ELSE excluded.event_id END,
                    is_rejection = excluded.is_rejection, reason = excluded.reason, uid = excluded.uid
                """,
            arguments: [
                "id": id, "identity": signature.identity, "name": signature.name,
                "signed_at": signature.signedAt.milliseconds, "reach": signature.reach,
                "rejection": signature.isRejection, "reason": signature.reason, "uid": signature.uid,
            ])
        if signature.isRejection {
            request.state = .rejected
            try db.execute(
                sql: "UPDATE approval SET state = :state WHERE id = :id",
                arguments: ["id": id, "state": request.state.rawValue])
        }
        return try record(request)
    }

    func use(_ demand: ApprovalDemand, run: Int64, now: Timestamp, by actor: Actor) throws -> ApprovalEvidence {
        let known = try latest(demand.request)
        let evidence = try demand.evidence(known, now: now)
        let isOpen = known?.request.state == .open
        let id = try (isOpen ? known?.request.id : nil) ?? insert(demand.request).id
        try db.execute(
            sql: "UPDATE approval SET state = :state, run_id = :run, evidence = :evidence WHERE id = :id",
            arguments: [
                "id": id, "state": ApprovalRequest.State.used.rawValue, "run": run,
                "evidence": try StoredJSON.text(evidence),
            ])
        try EventLog.record(
            db, kind: evidence.brokenGlass == nil ? .approvalUsed : .glassBroken, run: run, actor: actor,
            detail: "\(demand.request.plan) " + evidence.words, now: now)
        return evidence
    }

    private static func request(_ row: Row) throws -> ApprovalRequest {
        guard let state = ApprovalRequest.State(rawValue: row[10]) else {
            throw UnreadableValue("an approval is in the unknown state \(row[10] as String)")
        }
        return ApprovalRequest(
            id: row[0], definition: try RunDefinitionText(json: row[1]).definition(), occurrence: row[2],
            plan: row[3], digest: row[4], reach: row[5], needs: row[6], authors: try StoredJSON.value(row[7]),
            askedBy: row[8], askedAt: Timestamp(milliseconds: row[9]), state: state, run: row[11])
    }
}
