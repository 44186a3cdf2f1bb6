import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        return try await write { db in
            let (run, isNew) = try Self.insertRun(
                db, definition.campaign, text, occurrence: occurrence, isTest: isTest, now: now, by: actor,
                notes: notes, files: files)
            return (isNew ? try Self.weigh(db, run, volume, limits, now: now, by: actor) : run, isNew)
        }
    }

    /// One that was just made.
    static func weigh(
        _ db: Database, _ run: Run, _ volume: VolumeRequest?, _ limits: ReachLimits?, now: Timestamp, by actor: Actor
    ) throws -> Run {
        try limits?.write(to: run.id, db)
        guard let volume, let hold = try VolumeHistory(db, besides: run.id, volume, now: now).hold() else { return run }
        try RunStateChange(db, run.id, now: now).note(
            .paused, reason: hold.reason(run: run.id), actor: actor, halt: .volume)
        return try RunRow.require(db, run.id)
    }

    package func volumeHold(_ request: VolumeRequest, now: Timestamp) async throws -> VolumeHold? {
        try await read(.short) { db in try VolumeHistory(db, besides: 0, request, now: now).hold() }
    }

    static func insertRun(
        _ db: Database, _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool,
        now: Timestamp, by actor: Actor, notes: [EventNote], files: [String: String]
    ) throws -> (run: Run, isNew: Bool) {
        let isNew = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: isTest, now: now, db)
        let run = try Self.run(db, campaign: campaign.name, occurrence: occurrence)
        guard let run else { throw StoreError.noSuchRun(db.lastInsertedRowID) }
        guard isNew else { return (run, false) }
        try EventLog.record(
            db, kind: .runCreated, run: run.id, actor: actor, detail: occurrence, files: files, now: now)
        for note in notes {
            try EventLog.record(db, kind: note.kind, run: run.id, actor: actor, detail: note.detail, now: now)
        }
        return (run, isNew)
    }

    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        return try await write { db in
            guard try RunRow.insert(campaign, text, occurrence: occurrence, isTest: true, now: now, db) else {
                let run = try Self.run(db, campaign: campaign.name, occurrence: occurrence)
                throw StoreError.occurrenceTaken(campaign: campaign.name, occurrence: occurrence, run: run?.id ?? 0)
            }
            let run = db.lastInsertedRowID
            let batch = try FreezeSource.entry(ofDevice: device, campaign, variant: variant, db)
            _ = try FreezeBatch(db, run: run, now: now).insert(batch, isLast: true)
            try EventLog.record(
                db, kind: .runCreated, run: run, actor: actor, detail: "test of device \(device)", now: now)
            return try RunRow.require(db, run)
        }
    }

    package func run(_ id: Int64) async throws -> Run? {
        try await read(.short) { db in try RunRow.find(db, id) }
    }

    package func run(campaign: String, occurrence: String) async throws -> Run? {
        try await read(.short) { db in try Self.run(db, campaign: campaign, occurrence: occurrence) }
    }

    package func latestRun(campaign: String, includingTests: Bool) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(db, Self.latestClauses(includingTests: includingTests), ["campaign": campaign])
        }
    }

    package func latestRun(campaign: String, state: RunState) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(db, Self.latestInStateClauses, ["campaign": campaign, "state": state.rawValue])
        }
    }

    /// Walks the index `run_campaign` down from the newest run, past test runs.
    static func latestClauses(includingTests: Bool) -> String {
        "WHERE campaign = :campaign \(includingTests ? "" : "AND is_test = 0") ORDER BY id DESC LIMIT :limit"
    }

    /// One row of the index `run_campaign_state`.
    static let latestInStateClauses =
        "WHERE campaign = :campaign AND state = :state AND is_test = 0 ORDER BY id DESC LIMIT :limit"

    package func runs(limit: Int, includingTests: Bool) async throws -> [Run] {
        try await read(.short) { db in
            try ListedRun.page(before: nil, limit: limit) { before, limit in
                try RunRow.list(
                    db, "WHERE id < :before AND is_test <= :tests ORDER BY id DESC LIMIT :limit",
                    ["before": before ?? .max, "limit": limit, "tests": includingTests])
            }
        }
    }

    package func unreadableRuns() async throws -> [UnreadableRun] {
        try await read(.short) { db in try Self.unreadable(db) }
    }

    static func unreadable(_ db: Database) throws -> [UnreadableRun] {
        try RunRow.list(db, lookedClauses, [:]).unreadable
    }

    /// By the indices of states and of ids, however many runs there are.
    static let lookedClauses = """
        WHERE id IN (
            SELECT id FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished)))
            UNION SELECT id FROM (SELECT id FROM run ORDER BY id DESC LIMIT 100)
        ) ORDER BY id
        """

    package func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String> {
        guard !keys.isEmpty else { return [] }
        return try await read(.short) { db in
            let statement = try db.cachedStatement(
                sql: "SELECT 1 FROM run WHERE campaign = :campaign AND occurrence = :occurrence")
            return try Set(
                keys.filter { key in
                    try Row.fetchOne(statement, arguments: ["campaign": campaign, "occurrence": key]) != nil
                })
        }
    }

    package func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run] {
        let isAlive = isAlive
        return try await read(.short) { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT id, owner FROM run WHERE state IN (\(SQLConstants.list(RunState.open)))
                            AND (is_test = 0 OR occurrence GLOB '\(TestOccurrence.handedOverPrefix)*')
                        UNION ALL
                        SELECT id, owner FROM run WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL
                            AND is_test = 0 AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue))))
                        ORDER BY id
                        """))
            return try rows.compactMap { row in
                let (id, holder): (Int64, String?) = (row[0], row[1])
                let isTaken = holder.map { $0 != owner && isAlive($0) } ?? false
                return inHand.contains(id) || isTaken ? nil : try RunRow.list(db, "WHERE id = :id", ["id": id]).first
            }.readable
        }
    }

    package func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(db, Self.unfinishedClauses, ["campaign": campaign, "start": occurrencePrefix]).readable
        }
    }

    /// What is not over, however many runs of the campaign are: by the index of states, not the one in order of `id`.
    static let unfinishedClauses = """
        INDEXED BY run_campaign_state
        WHERE campaign = :campaign AND state IN (\(SQLConstants.list(RunState.unfinished))) AND is_test = 0
            AND substr(occurrence, 1, length(:start)) = :start
        ORDER BY id LIMIT \(UnfinishedRuns.countMax)
        """

    package func haltedRuns() async throws -> [Run] {
        try await read(.short) { db in try RunRow.list(db, Self.haltedClauses, [:]).readable }
    }

    /// Walks the index `run_halted`.
    static let haltedClauses = """
        WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL AND is_test = 0
            AND halt IN (\(SQLConstants.list(RunHalt.allCases.filter(\.waitsForPerson).map(\.rawValue))))
        ORDER BY id
        """

    package func openFeedRuns(campaign: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE campaign = :campaign AND state IN (\(SQLConstants.list(RunState.unfinished))) AND is_test = 0
                    AND (state <> '\(RunState.paused.rawValue)' OR paused_by IS NULL
                        AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue)))))
                    AND occurrence LIKE 'item-%' ORDER BY id
                """, ["campaign": campaign]
            ).readable
        }
    }

    private static func run(_ db: Database, campaign: String, occurrence: String) throws -> Run? {
        try RunRow.list(
            db, "WHERE campaign = :campaign AND occurrence = :occurrence",
            ["campaign": campaign, "occurrence": occurrence]
        ).first?.get()
    }

    package func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool {
        let text = try RunDefinitionText(definition)
        return try await write { db in
            guard
                try RunRow.insert(definition.campaign, text, occurrence: occurrence, isTest: false, now: now, db)
            else { return false }
            let run = db.lastInsertedRowID
            try db.execute(
                sql: "UPDATE run SET is_refused = :refused WHERE id = :run",
                arguments: ["run": run, "refused": state == .failed])
            try RunStateChange(db, run, now: now).enter(state, reason: reason, actor: actor)
            return true
        }
    }
}

/// What a run that was just made is weighed by.
private struct VolumeHistory {
    private let db: Database
    private let run: Int64
    private let request: VolumeRequest
    private let policy: VolumePolicy

    init(_ db: Database, besides run: Int64, _ request: VolumeRequest, now: Timestamp) {
        self.db = db
        self.run = run
        self.request = request
        policy = VolumePolicy(request, now: now)
    }

    func hold() throws -> VolumeHold? {
        // Down the indexes of campaigns and of actors.
        let campaign = try entries(
            "FROM run WHERE campaign = :name AND created_at >= :since AND created_at < :until", of: request.campaign)
        let actor = try request.actor.map { actor in
            try entries(
                """
                FROM event CROSS JOIN run ON run.id = event.run_id
                WHERE event.actor = :name AND event.kind = '\(EventKind.runCreated.rawValue)'
                    AND event.at >= :since AND event.at < :until
                """, of: actor)
        }
        return policy.hold(campaign: campaign, actor: actor ?? [])
    }

    /// What puts another run right is nothing new to anybody.
    private func entries(_ source: String, of name: String) throws -> [VolumePolicy.Entry] {
        try policy.spans.flatMap { span in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT run.created_at, run.audience - run.suppressed,
                        NOT run.is_frozen AND run.state IN (\(SQLConstants.list(RunState.unfinished)))
                            AND run.halt IS NOT '\(RunHalt.volume.rawValue)', run.reach
                    \(source) AND run.id <> :run AND run.is_test = 0
                        AND instr(run.definition, '\(StoredJSON.correction)') = 0
                    ORDER BY run.id DESC LIMIT \(VolumePolicy.entriesMax)
                    """,
                arguments: [
                    "name": name, "since": span.lowerBound.milliseconds, "until": span.upperBound.milliseconds,
                    "run": run,
                ]
            ).map {
                VolumePolicy.Entry(at: Timestamp(milliseconds: $0[0]), pushes: $0[1], isOpen: $0[2], weighed: $0[3])
            }
        }
    }
}
