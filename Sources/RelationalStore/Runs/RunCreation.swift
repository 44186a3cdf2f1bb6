package import Model
package import Store

extension RelationalStore {
    package func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        if let known = try await run(campaign: campaign.name, occurrence: occurrence) { return (known, false) }
        return try await transaction(.durableOnServer) { db in
            let creation = RunCreation(db, now: now, actor: actor)
            let made = try creation.insert(
                campaign, text, occurrence: occurrence, isTest: isTest, notes: notes, files: files)
            return made.isNew ? (try creation.weigh(made.run, volume, limits), true) : made
        }
    }

    package func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let (text, path) = (try RunDefinitionText(definition), path)
        return try await transaction(.durable) { db in
            try ApprovalRows(db).hold(demand.request)
            let creation = RunCreation(db, now: now, actor: actor)
            let made = try creation.insert(
                definition.campaign, text, occurrence: occurrence, isTest: false, notes: notes, files: files)
            guard made.isNew else { return made }
            let evidence = try ApprovalRows(db).use(demand, run: made.run.id, in: path, now: now, by: actor)
            return (try creation.weigh(made.run, volume, ReachLimits.signed(limits, demand, evidence)), true)
        }
    }

    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        return try await transaction(.quick) { db in
            let made = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: true, now: now, db)
            guard let run = made else {
                let run = try RunRow.find(db, campaign: campaign.name, occurrence: occurrence)
                throw StoreError.occurrenceTaken(campaign: campaign.name, occurrence: occurrence, run: run?.id ?? 0)
            }
            try db.freeze(ChosenDevice(device, of: campaign, variant: variant, db), run: run, now: now)
            try db.record(.runCreated, run: run, by: actor, "test of device \(device)", now: now)
            return try RunRow.require(db, run)
        }
    }

    package func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool {
        let text = try RunDefinitionText(definition)
        return try await transaction(.durableOnServer) { db in
            let made = try RunRow.insert(
                definition.campaign, text, occurrence: occurrence, isTest: false, now: now, db)
            guard let run = made else { return false }
            try db.execute("UPDATE run SET is_refused = $2 WHERE id = $1", run, state == .failed)
            try RunStateChange(db, run, now: now).enter(state, reason: reason, actor: actor)
            return true
        }
    }

    package func volumeHold(_ request: VolumeRequest, now: Timestamp) async throws -> VolumeHold? {
        try await snapshot(.short) { db in try VolumeHistory(db, besides: 0, request, now: now).hold() }
    }

    package func latestSignedRun(campaign: String) async throws -> Run? {
        try await snapshot(.short) { db in
            try RunRow.first(
                db,
                """
                WHERE id IN (
                    SELECT approval.run_id FROM approval
                    WHERE approval.campaign = $1 AND EXISTS (
                        SELECT 1 FROM run AS made WHERE made.id = approval.run_id AND made.state = $2
                    ) AND EXISTS (SELECT 1 FROM event WHERE event.run_id = approval.run_id AND kind = $3)
                ) ORDER BY id DESC LIMIT $4
                """, campaign, RunState.finished.rawValue, EventKind.approvalUsed.rawValue)
        }
    }
}

/// The creation of a run, in the transaction of `db`.
private struct RunCreation<Session: SQLSession> {
    private let db: Session
    private let now: Timestamp
    private let actor: Actor

    init(_ db: Session, now: Timestamp, actor: Actor) {
        self.db = db
        self.now = now
        self.actor = actor
    }

    func insert(
        _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool, notes: [EventNote],
        files: [String: String]
    ) throws -> (run: Run, isNew: Bool) {
        let made = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: isTest, now: now, db)
        guard let made else {
            // Another process has created the run at the same time.
            guard let run = try RunRow.find(db, campaign: campaign.name, occurrence: occurrence) else {
                throw StoreError.noSuchRun(0)
            }
            return (run, false)
        }
        _ = try db.record(.runCreated, run: made, by: actor, occurrence, files: files, now: now)
        for note in notes { try db.record(note.kind, run: made, by: actor, note.detail, now: now) }
        return (try RunRow.require(db, made), true)
    }

    /// Checks the volume of a run that was just inserted. The event of its creation blocks other creations, so the
    /// second of two simultaneous transactions sees the first run.
    func weigh(_ run: Run, _ volume: VolumeRequest?, _ limits: ReachLimits?) throws -> Run {
        try limits?.write(to: run.id, db)
        guard let volume, let hold = try VolumeHistory(db, besides: run.id, volume, now: now).hold() else { return run }
        try RunStateChange(db, run.id, now: now).note(
            .paused, reason: hold.reason(run: run.id), actor: actor, halt: .volume)
        return try RunRow.require(db, run.id)
    }
}

/// The earlier runs that the volume of a new run is compared with.
private struct VolumeHistory<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let request: VolumeRequest
    private let policy: VolumePolicy

    init(_ db: Session, besides run: Int64, _ request: VolumeRequest, now: Timestamp) {
        self.db = db
        self.run = run
        self.request = request
        policy = VolumePolicy(request, now: now)
    }

    /// Returns a hold if the run exceeds the usual volume. Reads along the indexes of campaigns and of actors.
    func hold() throws -> VolumeHold? {
        let campaign = try entries(
            "FROM run WHERE campaign = $1 AND created_at >= $2 AND created_at < $3", of: request.campaign)
        let actor = try request.actor.map { actor in
            try entries(
                """
                FROM event \(Session.dialect.orderedJoin) run ON run.id = event.run_id
                WHERE event.actor = $1 AND event.kind = '\(EventKind.runCreated.rawValue)'
                    AND event.at >= $2 AND event.at < $3
                """, of: actor)
        }
        return policy.hold(campaign: campaign, actor: actor ?? [])
    }

    /// Returns the runs of each span. Corrections are left out, because they send nothing new.
    private func entries(_ source: String, of name: String) throws -> [VolumePolicy.Entry] {
        try policy.spans.flatMap { span in
            try db.all(
                """
                SELECT run.created_at, run.audience - run.suppressed,
                    NOT run.is_frozen AND run.state IN (\(SQLConstants.list(RunState.unfinished)))
                        AND run.halt IS DISTINCT FROM '\(RunHalt.volume.rawValue)', run.reach
                \(source) AND run.id <> $4 AND \(Session.dialect.isFalse("run.is_test"))
                    AND \(Session.dialect.position)(run.definition, '\(StoredJSON.correction)') = 0
                ORDER BY run.id DESC LIMIT \(VolumePolicy.entriesMax)
                """, name, span.lowerBound, span.upperBound, run
            ) {
                VolumePolicy.Entry(
                    at: try $0.timestamp(0), pushes: try $0.int(1), isOpen: try $0.bool(2), weighed: try $0.intOrNil(3))
            }
        }
    }
}
