import Model
import Store
import RelationalStore

/// The devices of a run, in order of id, read from one snapshot.
struct FreezeSource {
    struct Batch: Sendable {
        var deliveries: [FrozenDelivery] = []
        var profiles = BatchProfiles<DeliveryProfile>()
        var isLast = false

        mutating func add(_ delivery: FrozenDelivery, _ profile: DeliveryProfile) {
            var delivery = delivery
            delivery.profile = profiles.index(profile) { profile }
            deliveries.append(delivery)
        }
    }

    /// The number of devices in the first batch. It is small, because sending starts with it.
    private static let firstBatchRows = 2_000
    private static let batchRows = 20_000

    private let db: PostgresSession
    private let run: Run
    private let analyst: AudienceCondition?
    private let now: Timestamp

    /// - Parameter analyst: the condition that selects the devices of an `audience_sql`.
    init(_ db: PostgresSession, _ run: Run, analyst: AudienceCondition?, now: Timestamp) {
        self.db = db
        self.run = run
        self.analyst = analyst
        self.now = now
    }

    /// Reads the devices in batches. The last batch may be empty.
    func read(_ put: (Batch) throws -> Void) throws {
        let definition = run.definition
        var batch = Batch()
        var rows = Self.firstBatchRows
        let selection = try AudienceSelection.of(definition, analyst: analyst, now: now, db)
        var policy = FreezePolicy(
            definition.campaign, waves: RecipientWaves(definition, startedAt: run.startedAt ?? run.createdAt),
            seeds: selection.seeds)
        let hasStages = policy.hasStages
        let turns = try definition.correction.map {
            CorrectionTurns(try RunRow.require(db, $0.run), plannedAt: definition.plannedAt)
        }
        let corrected = definition.correction.map { correction in
            "(SELECT changed_at FROM \(DeliveryTable(run: correction.run).name) AS sent WHERE sent.device_id = device.id)"
        }
        let after =
            try db.first("SELECT coalesce(max(device_id), 0) FROM \(DeliveryTable(run: run.id).name)") {
                try $0.int64(0)
            } ?? 0
        try selection.tellUsers(&policy, cutShort: after > 0 ? run.id : nil, db)
        try db.each(
            .once(
                """
                SELECT device.id, device.environment, device.token_generation, device.status, device.alerts_allowed,
                    \(definition.wall == nil && !hasStages ? "NULL::text" : "device.time_zone"),
                    \(hasStages ? "device.locale" : "NULL::text"),
                    \(corrected ?? "NULL::bigint"),
                    \(policy.goesByUser ? "device.user_id" : "NULL::text"),
                    device.locale, device.app_version, device.time_zone, device.country
                FROM device WHERE device.id > \(hasStages ? 0 : after) AND \(selection.sql) ORDER BY device.id
                """), values: selection.values
        ) { row in
            var delivery = try Self.delivery(row, &policy)
            turns?.give(&delivery.decision, settledAt: Timestamp(stored: try row.int64OrNil(7)))
            // A sample depends on all devices before it, so devices that were written before are decided again.
            guard delivery.device > after else { return }
            batch.add(
                delivery,
                DeliveryProfile(
                    locale: try row.textOrNil(9), appVersion: try row.textOrNil(10), timeZone: try row.textOrNil(11),
                    country: try row.textOrNil(12)))
            guard batch.deliveries.count == rows else { return }
            try put(batch)
            batch = Batch()
            rows = Self.batchRows
        }
        batch.isLast = true
        try put(batch)
    }

    private static func delivery(_ row: PostgresRow, _ policy: inout FreezePolicy) throws -> FrozenDelivery {
        let device = try row.int64(0)
        let (zone, locale, user) = (try row.textOrNil(5), try row.textOrNil(6), try row.textOrNil(8))
        let environment = try row.int64(1)
        let decision = policy.decide(
            device: device, PushEnvironment(code: environment), status: DeviceStatus(code: try row.int64(3)),
            alertsAllowed: try row.boolOrNil(4) ?? true, user: { user }, locale: { locale }, zone: { zone })
        return FrozenDelivery(
            device: device, environment: environment, generation: try row.int64(2), decision: decision)
    }
}
