import Model
import Store
import RelationalStore

/// A device that a run is for, and what its policy says.
struct FrozenDelivery: Sendable {
    var device: Int64
    var environment: Int64
    var generation: Int64
    var decision: FreezePolicy.Decision
    /// Into the profiles of its batch.
    var profile = 0
}

/// Writes a batch of deliveries, cuts it into chunks to be leased, and counts it, in one transaction.
struct FreezeBatch {
    /// Deliveries of one environment that a sender takes at a time.
    private static let chunkDeliveries = 1000

    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp

    init(_ db: PostgresSession, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// - Parameter batch: in order of device, all of them behind those written before.
    func insert(_ batch: FreezeSource.Batch) throws -> DeliveryCounts {
        let (deliveries, isLast) = (batch.deliveries, batch.isLast)
        try copy(deliveries, try DeliveryProfiles(db).numbers(of: batch.profiles.all))
        try cut(deliveries)
        var sizes: [Int: Int] = [:]
        for delivery in deliveries { if let stage = delivery.decision.stage { sizes[stage, default: 0] += 1 } }
        try RunStages.grow(sizes, run: run, db)
        if isLast { try db.execute("UPDATE run SET is_frozen = true WHERE id = $1", run) }
        var change = DeliveryCounts()
        change.audience = deliveries.count
        change.suppressed = deliveries.count { $0.decision.suppression != nil }
        change.pending = change.audience - change.suppressed
        return try RunRow.add(change, to: run, at: now, db)
    }

    private func copy(_ deliveries: [FrozenDelivery], _ profiles: [Int64?]) throws {
        guard !deliveries.isEmpty else { return }
        try db.copyIn(
            """
            COPY \(DeliveryTable(run: run).name) (
                run_id, device_id, environment, state, attempt, doubts, excused, leases, generation, variant, wave,
                stage, not_before, status, reason, changed_at, profile
            ) FROM STDIN (FORMAT binary)
            """
        ) { rows in
            for delivery in deliveries {
                let decision = delivery.decision
                let state = decision.suppression == nil ? DeliveryState.pending : .suppressed
                let profile = profiles[delivery.profile].map { Int32(clamping: $0) }
                try rows.row(
                    run, delivery.device, Int16(delivery.environment), Int16(state.code), Int32(0), Int32(0), Int32(0),
                    Int32(0), delivery.generation, decision.variant.map { Int16(clamping: $0) }, decision.wave,
                    decision.storedStage.map { Int16(clamping: $0) }, decision.notBefore(at: now), Int16(0),
                    decision.suppression?.rawValue, now, profile)
            }
        }
    }

    /// What waits for its wave is found by its index, and what is suppressed not at all.
    private func cut(_ deliveries: [FrozenDelivery]) throws {
        var (environments, firsts, lasts): ([Int64], [Int64], [Int64]) = ([], [], [])
        let fresh = deliveries.filter {
            $0.decision.suppression == nil && $0.decision.notBefore(at: now) == nil
        }
        for (environment, part) in Dictionary(grouping: fresh, by: \.environment) {
            for start in stride(from: 0, to: part.count, by: Self.chunkDeliveries) {
                environments.append(environment)
                firsts.append(part[start].device)
                lasts.append(part[min(start + Self.chunkDeliveries, part.count) - 1].device)
            }
        }
        guard !environments.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO chunk (run_id, environment, next_device, last_device)
            SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[])
            """, run, environments, firsts, lasts)
    }
}

extension FrozenDelivery {
    /// One device chosen by hand.
    static func byHand(
        _ device: Int64, _ campaign: Campaign, variant: Int?, _ db: PostgresSession
    ) throws -> FreezeSource.Batch {
        let row = try db.rows(
            """
            SELECT topic.name, environment, token_generation, status, alerts_allowed, user_id, locale, app_version,
                time_zone, country
            FROM device JOIN topic ON topic.id = device.topic_id WHERE device.id = $1
            """, device
        ).first
        guard let row else { throw StoreError.noSuchDevice(device) }
        let topic = try row.text(0)
        guard topic == campaign.deviceTopic else {
            throw StoreError.deviceOfOtherTopic(device, topic: topic, expected: campaign.deviceTopic)
        }
        let decision = FreezePolicy(campaign, waves: nil).decideByHand(
            device: device, status: DeviceStatus(code: try row.int64(3)),
            alertsAllowed: try row.boolOrNil(4) != false, user: try row.textOrNil(5), variant: variant)
        var batch = FreezeSource.Batch(isLast: true)
        try batch.add(
            FrozenDelivery(
                device: device, environment: try row.int64(1), generation: try row.int64(2), decision: decision),
            DeliveryProfile(
                locale: row.textOrNil(6), appVersion: row.textOrNil(7), timeZone: row.textOrNil(8),
                country: row.textOrNil(9)))
        return batch
    }
}
