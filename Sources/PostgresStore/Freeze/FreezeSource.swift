import Model
import Store
import RelationalStore

/// The devices of a run's audience, in order of id, read from one snapshot.
struct FreezeSource {
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

    /// Reads the devices in batches.
    func read(_ put: (FrozenDeliveries) throws -> Void) throws {
        var batch = FrozenDeliveries()
        var rows = Self.firstBatchRows
        let selection = try AudienceSelection.of(run.definition, analyst: analyst, now: now, db)
        var audience = try FreezeAudience(db, run, selection)
        try each(audience) { row in
            guard let delivery = try Self.delivery(row, &audience, &batch.profiles) else { return }
            batch.deliveries.append(delivery)
            guard batch.deliveries.count == rows else { return }
            try put(batch)
            batch = FrozenDeliveries()
            rows = Self.batchRows
        }
        if !batch.deliveries.isEmpty { try put(batch) }
    }

    /// Reads the rows as they arrive, or in batches if the decision about a device executes other statements.
    private func each(_ audience: FreezeAudience, _ body: (PostgresRow) throws -> Void) throws {
        guard audience.readsOpens else { return try db.each(audience.query, values: audience.values, body: body) }
        try db.eachInBatches(audience.query.text, values: audience.values, of: Self.firstBatchRows, body)
    }

    /// Returns `nil` if the delivery is already written.
    private static func delivery(
        _ row: PostgresRow, _ audience: inout FreezeAudience,
        _ profiles: inout BatchProfiles
    ) throws -> FrozenDelivery? {
        let device = try row.int64(0)
        let environment = try row.int64(1)
        let user = try audience.userColumn.flatMap { try row.textOrNil($0) }
        let settledAt = Timestamp(stored: try audience.settledColumn.flatMap { try row.int64OrNil($0) })
        let profile = DeliveryProfile(
            locale: try row.textOrNil(5), appVersion: try row.textOrNil(6), timeZone: try row.textOrNil(7),
            country: try row.textOrNil(8))
        let decision = try audience.decide(device, settledAt: settledAt) { policy in
            policy.decide(
                device: device, PushEnvironment(code: environment), status: DeviceStatus(code: try row.int64(3)),
                alertsAllowed: try row.boolOrNil(4) ?? true, user: { user }, locale: { profile.locale },
                zone: { profile.timeZone })
        }
        guard let decision else { return nil }
        return FrozenDelivery(
            device: device, environment: environment, generation: try row.int64(2), decision: decision,
            profile: profiles.index(profile.key) { profile })
    }
}
