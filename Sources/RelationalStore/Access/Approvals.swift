package import Model
package import Store

extension RelationalStore {
    package func requestApproval(
        _ request: ApprovalRequest, isAnew: Bool, by actor: Actor
    ) async throws -> ApprovalRecord {
        try await transaction(.durable) { db in try ApprovalRows(db).request(request, isAnew: isAnew, by: actor) }
    }

    package func recountApproval(_ request: ApprovalRequest) async throws -> ApprovalRecord {
        try await transaction(.durable) { db in try ApprovalRows(db).recount(request) }
    }

    package func approvals(in states: Set<ApprovalRequest.State>?, limit: Int) async throws -> [ApprovalRecord] {
        let names = (states ?? Set(ApprovalRequest.State.allCases)).map(\.rawValue)
        return try await snapshot(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                "state \(Session.dialect.isAny(1)) ORDER BY id DESC LIMIT $2", names, limit
            ).map(rows.record)
        }
    }

    package func approval(campaign: String, occurrence: String, digest: String) async throws -> ApprovalRecord? {
        try await snapshot(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.fetch(ApprovalRows<Session>.latestClauses, campaign, occurrence, digest).first.map(
                rows.record)
        }
    }

    package func contributors(campaign: String, occurrence: String, digest: String) async throws -> Set<String> {
        try await snapshot(.short) { db in
            // The definitions are not read: a request whose definition is unreadable still has its authors.
            let askers: [[String]] = try db.all(
                "SELECT authors, asked_by FROM approval WHERE campaign = $1 AND occurrence = $2 AND digest = $3",
                campaign, occurrence, digest
            ) { row in try StoredJSON.value(try row.text(0)) + [try row.text(1)] }
            // A person who looks at the same plan later, as an approver may, has contributed nothing to it.
            let makers = try db.all("SELECT maker FROM saved_plan WHERE digest = $1 ORDER BY id LIMIT 1", digest) {
                try $0.text(0)
            }
            // A person who gave an occurrence its values has written a part of what it sends.
            let givers = try db.all(
                "SELECT giver FROM occurrence_values WHERE campaign = $1 AND occurrence = $2", campaign, occurrence
            ) { try $0.text(0) }
            return Set(makers + givers + askers.flatMap(\.self))
        }
    }

    package func approval(_ name: ApprovalName) async throws -> ApprovalRecord? {
        try await snapshot(.short) { db in
            let rows = ApprovalRows(db)
            let found =
                switch name {
                case .number(let id): try rows.fetch("id = $1", id)
                case .digest(let digest): try rows.fetch("digest = $1 ORDER BY id DESC LIMIT 1", digest)
                case .run(let run): try rows.fetch("run_id = $1 ORDER BY id DESC LIMIT 1", run)
                }
            return try found.first.map(rows.record)
        }
    }

    package func withdrawApproval(_ id: Int64, by actor: Actor, now: Timestamp) async throws -> ApprovalRecord {
        try await transaction(.durable) { db in try ApprovalRows(db).withdraw(id, by: actor, now: now) }
    }

    package func openApprovals(startingWith text: String, limit: Int) async throws -> [ApprovalRecord] {
        try await snapshot(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                "state = $1 AND substr(digest, 1, length($2)) = $2 ORDER BY id DESC LIMIT $3",
                ApprovalRequest.State.open.rawValue, text, limit
            ).map(rows.record)
        }
    }

    package func awaitedApprovals(rejectedSince: Timestamp, limit: Int) async throws -> [ApprovalRecord] {
        try await snapshot(.short) { db in
            let rows = ApprovalRows(db)
            return try rows.list(
                """
                occurrence <> '' AND (state = $1 OR state = $2 AND EXISTS (
                    SELECT 1 FROM approval_signature
                    WHERE approval_id = approval.id AND is_rejection AND signed_at >= $3
                )) AND NOT EXISTS (
                    SELECT 1 FROM run WHERE run.campaign = approval.campaign AND run.occurrence = approval.occurrence
                ) ORDER BY id DESC LIMIT $4
                """, ApprovalRequest.State.open.rawValue, ApprovalRequest.State.rejected.rawValue, rejectedSince, limit
            ).map(rows.record)
        }
    }

    package func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp,
        isApproved: @escaping @Sendable (ApprovalRecord) -> Bool
    ) async throws -> ApprovalRecord {
        try await transaction(.durable) { db in
            try ApprovalRows(db).sign(request, signature, by: actor, now: now, isApproved: isApproved)
        }
    }

    package func lapseApprovals(campaign: String, occurrence: String, now: Timestamp) async throws {
        try await transaction(.quick) { db in
            try db.execute(
                "UPDATE approval SET state = $3 WHERE campaign = $1 AND occurrence = $2 AND state = $4", campaign,
                occurrence, ApprovalRequest.State.lapsed.rawValue, ApprovalRequest.State.open.rawValue)
        }
    }

    package func lapseApprovals(before moment: Timestamp) async throws {
        let open = ApprovalRequest.State.open.rawValue
        try await transaction(.quick) { db in
            // Wait for signatures that are being written. A later statement sees them; one that waits itself does not.
            let ids = try db.all(
                "SELECT id FROM approval WHERE state = $1 ORDER BY id\(Session.dialect.lock)", open
            ) { try $0.int64(0) }
            try db.execute(
                """
                UPDATE approval SET state = $2
                WHERE id \(Session.dialect.isAny(4)) AND state = $3 AND CASE
                    WHEN occurrence = '' THEN asked_at < $1 AND NOT EXISTS (
                        SELECT 1 FROM approval_signature WHERE approval_id = approval.id AND signed_at >= $1)
                    ELSE EXISTS (
                        SELECT 1 FROM run WHERE run.campaign = approval.campaign AND run.occurrence = approval.occurrence)
                    END
                """, moment, ApprovalRequest.State.lapsed.rawValue, open, ids)
        }
    }

    /// Returns the faults of every run that was created with an approval.
    package static func approvalFaults(_ db: Session) throws -> Verification.Check {
        let rows = ApprovalRows(db)
        let used = try rows.fetch("evidence IS NOT NULL ORDER BY id")
        let faults = try used.flatMap { request in
            let json = try db.first("SELECT evidence FROM approval WHERE id = $1", request.id) { try $0.text(0) }
            return ApprovalCheck.faults(
                run: request.run, try StoredJSON.value(json ?? ""), try rows.record(request))
        }
        return Verification.Check(ApprovalCheck.name, ApprovalCheck.promise, faults: faults, compared: used.count)
    }
}

/// Rows of `approval` and `approval_signature`.
package struct ApprovalRows<Session: SQLSession> {
    private let db: Session

    package init(_ db: Session) { self.db = db }

    /// Fetches requests. `condition` is a constant text of this module, with `$1` and so on for its values.
    func fetch(_ condition: String, _ values: any SQLValue...) throws -> [ApprovalRequest] {
        try db.all(Self.select(condition), values: values, read: Self.request)
    }

    /// Fetches requests, and skips those that cannot be read.
    func list(_ condition: String, _ values: any SQLValue...) throws -> [ApprovalRequest] {
        try db.readable(Self.select(condition), values: values, read: Self.request)
    }

    private static func select(_ condition: String) -> SQLStatement {
        """
        SELECT id, definition, occurrence, plan, digest, reach, needs, authors, asked_by, asked_at, state, run_id, note
        FROM approval WHERE \(condition)
        """
    }

    func record(_ request: ApprovalRequest) throws -> ApprovalRecord {
        let signatures = try db.all(
            """
            -- Only of one that waits does it matter what the clock has shown since.
            SELECT identity, name, signed_at, reach, is_rejection, reason, CASE WHEN $3 THEN (
                -- Where the clock was set back since, also what it showed before.
                SELECT \(Session.dialect.greatest)(at, coalesce((
                    SELECT max(expected_at) FROM clock_step WHERE shown_at IN (
                        SELECT at FROM event WHERE event.id >= event_id AND kind = $2)), at))
                FROM (SELECT max(at) AS at FROM event WHERE event.id >= event_id) AS latest) ELSE signed_at END, uid,
                CASE WHEN $3 THEN coalesce((
                    SELECT revoked_at IS NOT NULL OR NOT (role \(Session.dialect.isAny(4))) FROM access_token
                    WHERE 'token:' || access_token.name = identity ORDER BY access_token.id DESC LIMIT 1
                ), false) ELSE false END
            FROM approval_signature WHERE approval_id = $1 ORDER BY event_id
            """, request.id, EventKind.clockStepped.rawValue, request.state == .open,
            AccessRole.allCases.filter { $0.may(.approve) }.map(\.rawValue)
        ) { row in
            var signature = ApprovalSignature(
                identity: try row.text(0), name: try row.text(1), signedAt: try row.timestamp(2),
                seenAt: try row.timestampOrNil(6), reach: Int(try row.int64(3)), isRejection: try row.bool(4),
                reason: try row.textOrNil(5), uid: try row.int64OrNil(7))
            signature.isRevoked = try row.bool(8)
            return signature
        }
        return ApprovalRecord(request, signatures)
    }

    /// The clauses for the latest request of a plan.
    static var latestClauses: String { "campaign = $1 AND occurrence = $2 AND digest = $3 ORDER BY id DESC LIMIT 1" }

    /// Returns the latest request of a plan, and locks it until the transaction ends.
    private func latest(_ request: ApprovalRequest) throws -> ApprovalRecord? {
        try fetch(
            Self.latestClauses + Session.dialect.lock, request.campaign, request.occurrence, request.digest
        ).first.map(record)
    }

    /// Locks the latest request of a plan until the transaction ends. Call it before an event is recorded, as every
    /// transaction about a request does.
    package func hold(_ request: ApprovalRequest) throws { _ = try latest(request) }

    func request(_ request: ApprovalRequest, isAnew: Bool, by actor: Actor) throws -> ApprovalRecord {
        if let known = try latest(request) {
            if known.request.state == .open { return try recount(known, as: request) }
            if known.request.state == .rejected, !isAnew { return known }
        }
        if !request.occurrence.isEmpty {
            try db.execute(
                "UPDATE approval SET state = $3 WHERE campaign = $1 AND occurrence = $2 AND state = $4",
                request.campaign, request.occurrence, ApprovalRequest.State.replaced.rawValue,
                ApprovalRequest.State.open.rawValue)
        }
        guard let made = try insert(request) else {
            // Another process has inserted the same request at the same time.
            return try latest(request) ?? ApprovalRecord(request, [])
        }
        let event = try db.record(.approvalRequested, by: actor, made.requestSummary, now: request.askedAt)
        try Outbox.add(.approvalWanted, approval: made.id, event: event, now: request.askedAt, db)
        return ApprovalRecord(made, [])
    }

    func recount(_ request: ApprovalRequest) throws -> ApprovalRecord {
        try recount(record(open(request.id)), as: request)
    }

    private func recount(_ known: ApprovalRecord, as request: ApprovalRequest) throws -> ApprovalRecord {
        var record = known
        record.request.merge(request)
        try db.execute(
            "UPDATE approval SET reach = $2, needs = $3, authors = $4, plan = $5, note = $6 WHERE id = $1",
            record.request.id, record.request.reach, record.request.needs,
            StoredJSON.array(record.request.authors), record.request.plan, record.request.note)
        return record
    }

    /// Inserts a request. Returns `nil` if there is an open one.
    private func insert(_ request: ApprovalRequest) throws -> ApprovalRequest? {
        let id = try db.first(
            """
            INSERT INTO approval
                (campaign, occurrence, plan, digest, reach, needs, authors, asked_by, asked_at, state, definition,
                note)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            \(Session.dialect.unlessThere("(campaign, occurrence, digest) WHERE state = 'open'")) RETURNING id
            """, request.campaign, request.occurrence, request.plan, request.digest, request.reach, request.needs,
            StoredJSON.array(request.authors), request.askedBy, request.askedAt,
            ApprovalRequest.State.open.rawValue, try RunDefinitionText(request.definition).json, request.note
        ) { try $0.int64(0) }
        guard let id else { return nil }
        var made = request
        made.id = id
        return made
    }

    /// Returns an open request, and locks it until the transaction ends.
    private func open(_ id: Int64) throws -> ApprovalRequest {
        guard let request = try fetch("id = $1\(Session.dialect.lock)", id).first else {
            throw StoreError.approvalClosed(.lapsed)
        }
        guard request.state == .open else { throw StoreError.approvalClosed(request.state) }
        return request
    }

    func withdraw(_ id: Int64, by actor: Actor, now: Timestamp) throws -> ApprovalRecord {
        var request = try open(id)
        request.state = .withdrawn
        try db.execute("UPDATE approval SET state = $2 WHERE id = $1", id, request.state.rawValue)
        try db.record(.approvalWithdrawn, by: actor, request.summary, now: now)
        return try record(request)
    }

    func sign(
        _ id: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp,
        isApproved: (ApprovalRecord) -> Bool
    ) throws -> ApprovalRecord {
        var request = try open(id)
        let before = try record(request)
        let event = try db.record(
            signature.isRejection ? .planRejected : .planSigned, by: actor, request.summary(of: signature, by: actor),
            now: now)
        try db.execute(
            """
            INSERT INTO approval_signature
                (approval_id, identity, name, signed_at, event_id, reach, is_rejection, reason, uid)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (approval_id, identity) DO UPDATE SET
                name = $3, signed_at = $4, reach = $6, is_rejection = $7, reason = $8, uid = $9,
                event_id = CASE approval_signature.signed_at WHEN $4 THEN approval_signature.event_id ELSE $5 END
            """, id, signature.identity, signature.name, signature.signedAt, event, signature.reach,
            signature.isRejection, signature.reason, signature.uid)
        if signature.isRejection {
            request.state = .rejected
            try db.execute("UPDATE approval SET state = $2 WHERE id = $1", id, request.state.rawValue)
        }
        let signed = try record(request)
        if !signature.isRejection, !isApproved(before), isApproved(signed) {
            try Outbox.add(.approved, approval: id, event: event, now: now, db)
        }
        return signed
    }

    /// Uses up the approval that a run needs.
    ///
    /// - Parameter path: the path of the store, for an error.
    package func use(
        _ demand: ApprovalDemand, run: Int64, in path: String, now: Timestamp, by actor: Actor
    ) throws -> ApprovalEvidence {
        let known = try latest(demand.request)
        let evidence = try demand.evidence(known, now: now)
        let isOpen = known?.request.state == .open
        guard let id = try (isOpen ? known?.request.id : nil) ?? insert(demand.request)?.id else {
            throw StoreError.changedMeanwhile(path: path)
        }
        try db.execute(
            "UPDATE approval SET state = $2, run_id = $3, evidence = $4 WHERE id = $1", id,
            ApprovalRequest.State.used.rawValue, run, try StoredJSON.text(evidence))
        try db.record(
            evidence.emergencyOverride == nil ? .approvalUsed : .overridden, run: run, by: actor,
            "\(demand.request.plan) " + evidence.summary
                + (known?.request.note.map { "; note of \(known?.request.askedBy ?? ""): \($0)" } ?? ""), now: now)
        return evidence
    }

    private static func request(_ row: Session.Fields) throws -> ApprovalRequest {
        let word = try row.text(10)
        guard let state = ApprovalRequest.State(rawValue: word) else {
            throw UnreadableValue("an approval is in the unknown state \(word)")
        }
        return ApprovalRequest(
            id: try row.int64(0), definition: try RunDefinitionText(json: try row.text(1)).definition(),
            occurrence: try row.text(2), plan: try row.text(3), digest: try row.text(4),
            reach: Int(try row.int64(5)), needs: Int(try row.int64(6)),
            authors: try StoredJSON.value(try row.text(7)), askedBy: try row.text(8),
            askedAt: try row.timestamp(9), state: state, run: try row.int64OrNil(11), note: try row.textOrNil(12))
    }
}
