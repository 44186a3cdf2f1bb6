import GRDB
import Model
import RelationalStore
import Store

/// The devices of a run's audience, in order of id, read from one snapshot.
struct FreezeSource {
    struct Entry {
        var device: Int64
        var environment: Int64
        var generation: Int64
        var decision: FreezePolicy.Decision
        /// The index into the profiles of its batch.
        var profile = 0
    }

    struct Batch {
        var entries: [Entry] = []
        var profiles = BatchProfiles<UInt64>()
    }

    private let rows: RowStatement
    private var policy: FreezePolicy
    private var batchRows = StoreLimits.freezeFirstBatchRows
    private(set) var isAtEnd = false
    /// The last device that is already frozen.
    private let behind: Int64
    /// The send order of a correction; `nil` for any other run.
    private let turns: CorrectionTurns?

    init(_ db: Database, _ run: Run, _ selection: AudienceSelection) throws {
        let written =
            try db.first("SELECT coalesce(max(device_id), 0) FROM delivery WHERE run_id = $1", run.id) {
                try $0.int64(0)
            } ?? 0
        policy = FreezePolicy(
            run.definition.campaign, waves: RecipientWaves(run.definition, startedAt: run.startedAt ?? run.createdAt),
            seeds: selection.seeds)
        try selection.tellUsers(&policy, cutShort: written > 0 ? run.id : nil, db)
        let hasStages = policy.hasStages
        turns = try run.definition.correction.map {
            CorrectionTurns(try RunRow.require(db, $0.run), plannedAt: run.definition.plannedAt)
        }
        // The sample depends on all devices seen before, so a run with stages reads them again.
        behind = hasStages ? written : 0
        let corrected = run.definition.correction.map { correction in
            """
            (
                SELECT changed_at FROM delivery AS sent
                WHERE sent.run_id = \(correction.run) AND sent.device_id = device.id
            )
            """
        }
        let audience = """
            SELECT device.id, device.environment, device.token_generation, device.status, device.alerts_allowed,
                \(run.definition.wall == nil && !hasStages ? "NULL" : "device.time_zone"),
                \(hasStages ? "device.locale" : "NULL"),
                \(corrected ?? "NULL"),
                \(policy.goesByUser ? "device.user_id" : "NULL"),
                device.locale, device.app_version, device.time_zone, device.country
            FROM device
            WHERE device.id > \(hasStages ? 0 : written) AND \(selection.sql)
            ORDER BY device.id
            """
        rows = try db.prepare(.once(audience), selection.values)
    }

    mutating func nextBatch() throws -> Batch {
        var batch = Batch()
        batch.entries.reserveCapacity(batchRows)
        while batch.entries.count < batchRows {
            guard try rows.step() else {
                isAtEnd = true
                break
            }
            var entry = entry(rows.int64(0))
            guard entry.device > behind else { continue }
            entry.profile = profile(&batch.profiles)
            batch.entries.append(entry)
        }
        batchRows = StoreLimits.freezeBatchRows
        return batch
    }

    /// Finds the profile by a hash of its texts, so that a known profile copies nothing.
    private func profile(_ profiles: inout BatchProfiles<UInt64>) -> Int {
        var hash: UInt64 = 0
        for column in Self.profileColumns { hash = (hash ^ rows.textHash(column)) &* 0x9e37_79b9_7f4a_7c15 }
        return profiles.index(hash) {
            DeliveryProfile(
                locale: rows.text(9), appVersion: rows.text(10), timeZone: rows.text(11), country: rows.text(12))
        }
    }

    private static let profileColumns: ClosedRange<Int32> = 9...12

    private mutating func entry(_ device: Int64) -> Entry {
        let rows = rows
        var decision = policy.decide(
            device: device, PushEnvironment(code: rows.int64(1)), status: DeviceStatus(code: rows.int64(3)),
            alertsAllowed: rows.isNull(4) || rows.int64(4) != 0, user: { rows.text(8) },
            stratum: { StageSample.Stratum(locale: rows.textHash(6), zone: rows.textHash(5)) }, zone: { rows.text(5) })
        turns?.give(&decision, settledAt: Timestamp(stored: rows.int64OrNil(7)))
        return Entry(device: device, environment: rows.int64(1), generation: rows.int64(2), decision: decision)
    }

    func close() { rows.reset() }
}

extension FreezeSource.Batch {
    /// Creates a batch of one device chosen by a person.
    init(_ chosen: ChosenDevice) {
        _ = profiles.index(0) { chosen.profile }
        entries = [
            FreezeSource.Entry(
                device: chosen.device, environment: chosen.environment, generation: chosen.generation,
                decision: chosen.decision)
        ]
    }
}

/// Inserts a batch of deliveries and counts them, in the transaction of `db`.
struct FreezeBatch {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    func insert(_ batch: FreezeSource.Batch, isLast: Bool) throws -> DeliveryCounts {
        let entries = batch.entries
        let profiles = try DeliveryProfiles(db).numbers(of: batch.profiles.all)
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO delivery (
                run_id, device_id, environment, state, attempt, doubts, generation, variant, wave, stage, not_before,
                locale_index, status, reason, changed_at, profile
            ) VALUES (
                :run, :device, :environment, :state, 0, 0, :generation, :variant, :wave, :stage, :not_before, NULL, 0,
                :reason, :now, :profile
            )
            """)
        let device = insertion.parameter(":device")
        let environment = insertion.parameter(":environment")
        let stateParameter = insertion.parameter(":state")
        let generation = insertion.parameter(":generation")
        let variant = insertion.parameter(":variant")
        let wave = insertion.parameter(":wave")
        let stage = insertion.parameter(":stage")
        let notBefore = insertion.parameter(":not_before")
        let reason = insertion.parameter(":reason")
        let profile = insertion.parameter(":profile")
        try insertion.bind(run, insertion.parameter(":run"))
        try insertion.bind(now.milliseconds, insertion.parameter(":now"))
        var change = DeliveryCounts()
        change.audience = entries.count
        var sizes: [Int: Int] = [:]
        for entry in entries {
            let decision = entry.decision
            let state = decision.suppression == nil ? DeliveryState.pending : .suppressed
            try insertion.bind(entry.device, device)
            try insertion.bind(entry.environment, environment)
            try insertion.bind(state.code, stateParameter)
            try insertion.bind(entry.generation, generation)
            try insertion.bind(decision.variant.map(Int64.init), variant)
            try insertion.bind(decision.wave?.milliseconds, wave)
            try insertion.bind(decision.storedStage.map(Int64.init), stage)
            try insertion.bind(decision.notBefore(at: now), notBefore)
            try insertion.bind(decision.suppression?.rawValue, reason)
            try insertion.bind(profiles[entry.profile], profile)
            try insertion.run()
            if state == .suppressed { change.suppressed += 1 } else { change.pending += 1 }
            if let stage = decision.stage { sizes[stage, default: 0] += 1 }
        }
        try RunStages.grow(sizes, run: run, db)
        if isLast {
            try db.execute(sql: "UPDATE run SET is_frozen = 1 WHERE id = :run", arguments: ["run": run])
        }
        return try RunRow.add(change, to: run, at: now, db)
    }
}
