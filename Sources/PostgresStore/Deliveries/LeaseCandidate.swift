import Model
import Store
import Synchronization
import RelationalStore

/// Finds candidates for one lease, and keeps other senders from finding the same ones until the transaction ends.
struct LeaseCandidates {
    private let db: PostgresSession
    private let request: LeaseRequest
    private let table: DeliveryTable
    private let fields: FieldColumns

    init(_ db: PostgresSession, _ request: LeaseRequest) {
        self.db = db
        self.request = request
        table = DeliveryTable(run: request.run)
        fields = FieldColumns(request.fields)
    }

    /// Returns the put-off deliveries that are due, longest due first, from the bound on. Also returns the time that
    /// decided it.
    ///
    /// The inner query stands alone: in a join, the planner might lock more rows than the limit.
    ///
    /// - Returns: also the place of the first delivery; `nil` if there is none.
    func due(
        limit: Int, from bound: DueBound
    ) throws -> (candidates: [LeaseCandidate], moment: Timestamp, first: DueBound?) {
        // If no delivery is due, there is one row, with the time alone.
        let rows = try db.rows(
            """
            WITH due AS MATERIALIZED (
                SELECT device_id, not_before FROM \(table.name)
                WHERE environment = $1 AND state = \(DeliveryState.pending.code) 
                    AND not_before <= coalesce($2::bigint, \(StoreTime.statement))
                    AND (not_before, device_id) >= ($4, $5)
                ORDER BY not_before, device_id LIMIT $3
                FOR NO KEY UPDATE SKIP LOCKED
            )
            SELECT clock.moment, device_id, not_before
            FROM (SELECT coalesce($2::bigint, \(StoreTime.now)) AS moment) AS clock LEFT JOIN due ON true
            ORDER BY not_before, device_id
            """, request.environment.code, db.given(request.now), limit, bound.notBefore, bound.device)
        let devices = try rows.compactMap { try $0.int64OrNil(1) }
        let first = try devices.first.flatMap { device in
            try rows.first?.int64OrNil(2).map { DueBound(notBefore: $0, device: device) }
        }
        return (devices.isEmpty ? [] : try read(devices), try rows.first?.timestamp(0) ?? request.now, first)
    }

    /// Returns deliveries of stages that have begun, up to this one, which were held until then.
    func held(upTo stage: Int, limit: Int) throws -> [LeaseCandidate] {
        guard limit > 0 else { return [] }
        let devices = try db.all(
            """
            SELECT device_id FROM \(table.name)
            WHERE environment = $1 AND state = \(DeliveryState.pending.code) AND not_before BETWEEN $2 AND $3
            ORDER BY not_before, device_id LIMIT $4
            FOR NO KEY UPDATE SKIP LOCKED
            """, request.environment.code, NotBefore.held(stage: 0), NotBefore.held(stage: stage), limit
        ) { try $0.int64(0) }
        return devices.isEmpty ? [] : try read(devices)
    }

    /// Returns deliveries that were never put off, in order of device, from the first chunks that no other sender has
    /// locked.
    ///
    /// - Returns: also how far each chunk was examined. Deliveries before that point are no longer fresh.
    func fresh(limit: Int) throws -> (candidates: [LeaseCandidate], chunks: [FreshChunk]) {
        var (candidates, chunks): ([LeaseCandidate], [FreshChunk]) = ([], [])
        while candidates.count < limit, let chunk = try nextChunk(behind: chunks.last) {
            let rest = limit - candidates.count
            let found = try read(chunk, limit: rest)
            candidates += found
            chunks.append(chunk.lookedAt(found.last?.delivery.device, isWhole: found.count < rest))
        }
        return (candidates, chunks)
    }

    private func nextChunk(behind last: FreshChunk?) throws -> FreshChunk? {
        try db.first(
            """
            SELECT next_device, last_device FROM chunk
            WHERE run_id = $1 AND environment = $2 AND last_device > $3
            ORDER BY last_device LIMIT 1
            FOR UPDATE SKIP LOCKED
            """, request.run, request.environment.code, last?.last ?? 0
        ) { FreshChunk(first: try $0.int64(0), last: try $0.int64(1)) }
    }

    private func read(_ chunk: FreshChunk, limit: Int) throws -> [LeaseCandidate] {
        try db.all(
            """
            SELECT \(columns)
            FROM \(table.name) AS delivery
            \(Self.devices)
            WHERE delivery.device_id BETWEEN $2 AND $3 AND delivery.environment = $4
                AND delivery.state = \(DeliveryState.pending.code) AND delivery.not_before IS NULL
            ORDER BY delivery.device_id LIMIT $5
            """, fields.keys, chunk.first, chunk.last, request.environment.code, limit
        ) { try candidate($0, isWaiting: false) }
    }

    /// Reads the deliveries in the given order.
    private func read(_ devices: [Int64]) throws -> [LeaseCandidate] {
        try db.all(
            """
            SELECT \(columns)
            FROM unnest($2::bigint[]) WITH ORDINALITY AS given (device, place)
            JOIN \(table.name) AS delivery ON delivery.device_id = given.device
            \(Self.devices)
            ORDER BY given.place
            """, fields.keys, devices
        ) { try candidate($0, isWaiting: true) }
    }

    private static let devices = """
        LEFT JOIN device ON device.id = delivery.device_id
        LEFT JOIN proven_token ON proven_token.device_id = device.id
            AND proven_token.token_generation = device.token_generation
        """

    private var columns: String {
        """
        delivery.device_id, delivery.leases, delivery.attempt, device.status, device.token_generation, device.token,
            device.locale, device.badge, proven_token.device_id IS NOT NULL, delivery.excused, delivery.variant,
            \(request.quiet == nil ? "NULL::text" : "device.time_zone"), delivery.wave, delivery.stage,
            \(request.caps?.rule.asksForUser == true ? "device.user_id" : "NULL::text"),
            device.environment\(fields.sql(parameter: 1))
        """
    }

    private func candidate(_ row: PostgresRow, isWaiting: Bool) throws -> LeaseCandidate {
        let delivery = LeasedDelivery(
            device: try row.int64(0), generation: try row.intOrNil(4) ?? 0, leaseNumber: try row.int(1) + 1,
            attempt: try row.int(2) + 1, excused: try row.int(9), token: try row.bytesOrNil(5) ?? [],
            locale: try row.textOrNil(6), fields: try request.fields.indices.map { try row.textOrNil(16 + $0) },
            badge: (try row.intOrNil(7) ?? 0) + request.badgeIncrement, isProven: try row.bool(8),
            variant: try row.intOrNil(10),
            wave: try row.timestampOrNil(12), stage: try row.intOrNil(13))
        return LeaseCandidate(
            status: try row.int64OrNil(3).map(DeviceStatus.init(code:)),
            environment: try row.int64OrNil(15).map(PushEnvironment.init(code:)), isWaiting: isWaiting,
            zone: try row.textOrNil(11), user: try row.textOrNil(14), delivery: delivery)
    }
}

/// A part of the frozen deliveries, and how far it was leased.
struct FreshChunk: Hashable {
    /// The first device that was not leased before.
    let first: Int64
    /// The first device that is still not leased now.
    var next: Int64
    let last: Int64

    init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
        next = first
    }

    /// - Parameters:
    ///   - device: the last device examined; `nil` if there was none.
    ///   - isWhole: whether nothing fresh lies behind it.
    func lookedAt(_ device: Int64?, isWhole: Bool) -> FreshChunk {
        var looked = self
        looked.next = isWhole ? last + 1 : device.map { $0 + 1 } ?? first
        return looked
    }

    /// Returns the chunk in which `device` and all devices behind it stay as they are.
    func cut(before device: Int64) -> FreshChunk {
        var cut = self
        cut.next = max(first, min(next, device))
        return cut
    }
}

/// A place in the index of waiting deliveries. Due deliveries are leased in the order of this index.
struct DueBound: Hashable {
    static let start = DueBound(notBefore: .min, device: .min)

    var notBefore: Int64
    var device: Int64
}

/// The places where the due deliveries begin, by run and environment, as this process found them.
///
/// Each lease leaves dead entries in the index, which stay as long as an old snapshot is open. A walk from the start
/// would go through all of them each time. A delivery may come to lie before the bound, so every few seconds one walk
/// begins at the start.
final class DueBounds: Sendable {
    static let wholeEvery: Duration = .seconds(5)
    /// A run that ends in another process leaves its bound here. Beyond this number, all bounds are forgotten.
    private static let countMax = 1_000

    private struct Key: Hashable {
        var run: Int64
        var environment: PushEnvironment

        init(_ request: LeaseRequest) { (run, environment) = (request.run, request.environment) }
    }

    private struct Entry {
        var bound: DueBound
        /// When a walk last began at the start.
        var wholeAt: ContinuousClock.Instant
    }

    private let entries = Mutex<[Key: Entry]>([:])

    /// Returns where the next walk begins.
    func next(_ request: LeaseRequest, at now: ContinuousClock.Instant = .now) -> DueBound {
        entries.withLock { entries in
            if let entry = entries[Key(request)], now - entry.wholeAt < Self.wholeEvery { return entry.bound }
            if entries.count >= Self.countMax { entries.removeAll() }
            entries[Key(request), default: Entry(bound: .start, wholeAt: now)].wholeAt = now
            return .start
        }
    }

    func forget(run: Int64) { entries.withLock { entries in entries = entries.filter { $0.key.run != run } } }

    /// Records that no delivery before the bound is due and free.
    func found(_ bound: DueBound?, _ request: LeaseRequest) {
        guard let bound else { return }
        entries.withLock { $0[Key(request)]?.bound = bound }
    }
}
