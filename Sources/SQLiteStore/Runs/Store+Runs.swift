import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// The run of this occurrence, made now unless it is there: a timer, a daemon and a retried call get the same one.
    /// An existing run keeps its own definition, whatever is given here. A test run is kept out of ``runs(limit:includingTests:)``,
    /// ``latestRun(campaign:includingTests:)`` and the analysts' `delivery_view`.
    ///
    /// - Parameters:
    ///   - notes: put on record with a new run, in its transaction.
    ///   - files: the hashes of the files it was made from, for the record.
    package func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String]
    ) async throws -> (run: Run, isNew: Bool) {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        return try await write { db in
            let isNew = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: isTest, now: now, db)
            let run = try Self.run(db, campaign: campaign.name, occurrence: occurrence)
            guard let run else { throw StoreError.noSuchRun(db.lastInsertedRowID) }
            guard isNew else { return (run, false) }
            try EventLog.record(
                db, kind: "run_created", run: run.id, actor: actor, detail: occurrence, files: files, now: now)
            for note in notes {
                try EventLog.record(db, kind: note.kind, run: run.id, actor: actor, detail: note.detail, now: now)
            }
            return (run, isNew)
        }
    }

    /// A test run for one device, frozen already: the audience, the holdout and the guards do not matter, everything
    /// else is as in any run. The delivery is suppressed at once where the device may not be sent to. A background push
    /// counts against the device's silent budget as any other.
    ///
    /// - Parameter variant: nil: the one the device would get.
    ///
    /// ``StoreError/noSuchDevice(_:)``, ``StoreError/deviceOfOtherTopic(_:topic:expected:)``, and
    /// ``StoreError/occurrenceTaken(campaign:occurrence:run:)``: a test never goes on with another run.
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
            let entry = try FreezeSource.entry(ofDevice: device, campaign, variant: variant, db)
            _ = try FreezeBatch(db, run: run, now: now).insert([entry], isLast: true)
            try EventLog.record(
                db, kind: "run_created", run: run, actor: actor, detail: "test of device \(device)", now: now)
            return try RunRow.require(db, run)
        }
    }

    package func run(_ id: Int64) async throws -> Run? {
        try await read { db in try RunRow.fetch(db, "WHERE id = :id", ["id": id]).first }
    }

    package func run(campaign: String, occurrence: String) async throws -> Run? {
        try await read { db in try Self.run(db, campaign: campaign, occurrence: occurrence) }
    }

    package func latestRun(campaign: String, includingTests: Bool) async throws -> Run? {
        try await read { db in
            try RunRow.fetch(
                db, "WHERE campaign = :campaign AND is_test <= :tests ORDER BY id DESC LIMIT 1",
                ["campaign": campaign, "tests": includingTests]
            ).first
        }
    }

    package func latestRun(campaign: String, state: RunState) async throws -> Run? {
        try await read { db in
            try RunRow.fetch(
                db, "WHERE campaign = :campaign AND state = :state AND is_test = 0 ORDER BY id DESC LIMIT 1",
                ["campaign": campaign, "state": state.rawValue]
            ).first
        }
    }

    /// Newest first.
    package func runs(limit: Int, includingTests: Bool) async throws -> [Run] {
        try await read { db in
            try RunRow.fetch(
                db, "WHERE is_test <= :tests ORDER BY id DESC LIMIT :limit",
                ["limit": limit, "tests": includingTests])
        }
    }

    private static func run(_ db: Database, campaign: String, occurrence: String) throws -> Run? {
        try RunRow.fetch(
            db, "WHERE campaign = :campaign AND occurrence = :occurrence",
            ["campaign": campaign, "occurrence": occurrence]
        ).first
    }
}
