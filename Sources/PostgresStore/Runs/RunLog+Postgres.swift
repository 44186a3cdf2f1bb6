package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        if let known = try await run(campaign: campaign.name, occurrence: occurrence) { return (known, false) }
        return try await write(.durable) { db in
            let (run, isNew) = try Self.insertRun(
                db, campaign, text, occurrence: occurrence, isTest: isTest, now: now, by: actor, notes: notes,
                files: files)
            return (isNew ? try Self.weigh(db, run, volume, limits, now: now, by: actor) : run, isNew)
        }
    }

    /// One that was just made: the record of its making keeps every other one waiting, so that of two that are made at once
    /// the second sees the first.
    static func weigh(
        _ db: PostgresSession, _ run: Run, _ volume: VolumeRequest?, _ limits: ReachLimits?, now: Timestamp,
        by actor: Actor
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
        _ db: PostgresSession, _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool,
        now: Timestamp, by actor: Actor, notes: [EventNote], files: [String: String]
    ) throws -> (run: Run, isNew: Bool) {
        let made = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: isTest, now: now, db)
        guard let made else {
            // Another process was faster.
            guard let run = try Self.run(db, campaign: campaign.name, occurrence: occurrence) else {
                throw StoreError.noSuchRun(0)
            }
            return (run, false)
        }
        try EventLog.record(
            db, kind: .runCreated, run: made, actor: actor, detail: occurrence, files: files, now: now)
        for note in notes {
            try EventLog.record(db, kind: note.kind, run: made, actor: actor, detail: note.detail, now: now)
        }
        return (try RunRow.require(db, made), true)
    }

    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        return try await write(.quick) { db in
            let made = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: true, now: now, db)
            guard let run = made else {
                let run = try Self.run(db, campaign: campaign.name, occurrence: occurrence)
                throw StoreError.occurrenceTaken(campaign: campaign.name, occurrence: occurrence, run: run?.id ?? 0)
            }
            let batch = try FrozenDelivery.byHand(device, campaign, variant: variant, db)
            _ = try FreezeBatch(db, run: run, now: now).insert(batch)
            try EventLog.record(
                db, kind: .runCreated, run: run, actor: actor, detail: "test of device \(device)", now: now)
            return try RunRow.require(db, run)
        }
    }

    package func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool {
        let text = try RunDefinitionText(definition)
        return try await write(.durable) { db in
            let made = try RunRow.insert(
                definition.campaign, text, occurrence: occurrence, isTest: false, now: now, db)
            guard let run = made else { return false }
            try db.execute("UPDATE run SET is_refused = $2 WHERE id = $1", run, state == .failed)
            try RunStateChange(db, run, now: now).enter(state, reason: reason, actor: actor)
            return true
        }
    }

    package func run(_ id: Int64) async throws -> Run? { try await read(.short) { db in try RunRow.find(db, id) } }

    package func run(campaign: String, occurrence: String) async throws -> Run? {
        try await read(.short) { db in try Self.run(db, campaign: campaign, occurrence: occurrence) }
    }

    private static func run(_ db: PostgresSession, campaign: String, occurrence: String) throws -> Run? {
        try RunRow.list(db, "WHERE campaign = $1 AND occurrence = $2", campaign, occurrence).first?.get()
    }

    package func latestRun(campaign: String, includingTests: Bool) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(
                db, "WHERE campaign = $1 AND (NOT is_test OR $2) ORDER BY id DESC LIMIT $3", campaign, includingTests)
        }
    }

    package func latestRun(campaign: String, state: RunState) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(
                db, "WHERE campaign = $1 AND state = $2 AND NOT is_test ORDER BY id DESC LIMIT $3", campaign,
                state.rawValue)
        }
    }

    package func runs(limit: Int, includingTests: Bool) async throws -> [Run] {
        try await read(.short) { db in
            try ListedRun.page(before: nil, limit: limit) { before, limit in
                try RunRow.list(
                    db, "WHERE id < $1 AND (NOT is_test OR $2) ORDER BY id DESC LIMIT $3", before ?? .max,
                    includingTests, limit)
            }
        }
    }

    package func unreadableRuns() async throws -> [UnreadableRun] {
        try await read(.short) { db in try Self.unreadable(db) }
    }

    static func unreadable(_ db: PostgresSession) throws -> [UnreadableRun] {
        try RunRow.list(
            db,
            """
            WHERE id IN (
                SELECT id FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished)))
                UNION (SELECT id FROM run ORDER BY id DESC LIMIT 100)
            ) ORDER BY id
            """
        ).unreadable
    }

    package func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String> {
        guard !keys.isEmpty else { return [] }
        return try await read(.short) { db in
            Set(
                try db.all("SELECT occurrence FROM run WHERE campaign = $1 AND occurrence = ANY ($2)", campaign, keys) {
                    try $0.text(0)
                })
        }
    }

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

    package func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE campaign = $1 AND state IN (\(SQLConstants.list(RunState.unfinished))) AND NOT is_test
                    AND starts_with(occurrence, $2)
                ORDER BY id LIMIT \(UnfinishedRuns.countMax)
                """, campaign, occurrencePrefix
            ).readable
        }
    }

    package func haltedRuns() async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL AND NOT is_test
                    AND halt IN (\(SQLConstants.list(RunHalt.allCases.filter(\.waitsForPerson).map(\.rawValue))))
                ORDER BY id
                """
            ).readable
        }
    }

    package func openFeedRuns(campaign: String) async throws -> [Run] {
        try await read(.short) { db in
            try RunRow.list(
                db,
                """
                WHERE campaign = $1 AND state IN (\(SQLConstants.list(RunState.unfinished))) AND NOT is_test
                    AND (state <> '\(RunState.paused.rawValue)' OR paused_by IS NULL
                        AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue)))))
                    AND starts_with(occurrence, 'item-')
                ORDER BY id
                """, campaign
            ).readable
        }
    }
}

/// What a run that was just made is weighed by.
private struct VolumeHistory {
    private let db: PostgresSession
    private let run: Int64
    private let request: VolumeRequest
    private let policy: VolumePolicy

    init(_ db: PostgresSession, besides run: Int64, _ request: VolumeRequest, now: Timestamp) {
        self.db = db
        self.run = run
        self.request = request
        policy = VolumePolicy(request, now: now)
    }

    func hold() throws -> VolumeHold? {
        let campaign = try entries(
            "FROM run WHERE campaign = $1 AND created_at >= $2 AND created_at < $4", of: request.campaign)
        let actor = try request.actor.map { actor in
            try entries(
                """
                FROM event JOIN run ON run.id = event.run_id
                WHERE event.actor = $1 AND event.kind = '\(EventKind.runCreated.rawValue)' AND event.at >= $2
                    AND event.at < $4
                """, of: actor)
        }
        return policy.hold(campaign: campaign, actor: actor ?? [])
    }

    /// What puts another run right is nothing new to anybody.
    private func entries(_ source: String, of name: String) throws -> [VolumePolicy.Entry] {
        let unfinished = RunState.unfinished.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return try policy.spans.flatMap { span in
            try db.rows(
                """
                SELECT run.created_at, run.audience - run.suppressed,
                    NOT run.is_frozen AND run.state IN (\(unfinished))
                        AND run.halt IS DISTINCT FROM '\(RunHalt.volume.rawValue)', run.reach
                \(source) AND run.id <> $3 AND NOT run.is_test
                    AND position('\(StoredJSON.correction)' IN run.definition) = 0
                ORDER BY run.id DESC LIMIT \(VolumePolicy.entriesMax)
                """, name, span.lowerBound, run, span.upperBound
            ).map {
                VolumePolicy.Entry(
                    at: try $0.timestamp(0), pushes: try $0.int(1), isOpen: try $0.bool(2),
                    weighed: try $0.int64OrNil(3).map { Int($0) })
            }
        }
    }
}
