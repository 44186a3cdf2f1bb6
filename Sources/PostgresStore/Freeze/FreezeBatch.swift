import Model
import Store
import RelationalStore

/// Writes a batch of deliveries, divides it into chunks for leasing, and counts it, in one transaction.
struct FreezeBatch {
    /// The number of deliveries in a chunk. A chunk has one environment, and one sender takes it at a time.
    private static let chunkDeliveries = 1000

    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp

    init(_ db: PostgresSession, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// - Parameter batch: deliveries in order of device, with ids above those of all earlier batches.
    func insert(_ batch: FrozenDeliveries) throws {
        try copy(batch.deliveries, try DeliveryProfiles(db).numbers(of: batch.profiles.all))
        try cut(batch.deliveries)
        try batch.count(run: run, at: now, db)
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

    /// Divides fresh deliveries into chunks. A delivery that waits for its wave needs no chunk, because an index
    /// finds it. A suppressed delivery is never leased.
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
