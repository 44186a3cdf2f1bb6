import Model
import Store
import Synchronization
import RelationalStore

/// Finds candidates for one lease, and locks them, so that no other sender finds them until the transaction ends.
struct LeaseCandidates {
    private let db: PostgresSession
    private let request: LeaseRequest
    private let table: DeliveryTable

    init(_ db: PostgresSession, _ request: LeaseRequest) {
        self.db = db
        self.request = request
        table = DeliveryTable(run: request.run)
    }

    /// Returns the put-off deliveries that are due, longest due first, from the bound on. Also returns the time by
    /// which they are due.
    ///
    /// The inner query contains no join, because the planner might then lock more rows than the limit.
    ///
    /// - Returns: also the index position of the first delivery; `nil` if there is none.
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

    /// Returns deliveries that were held until their stage began, for stages up to this one.
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
    /// - Returns: also the chunks, each with the point up to which it was examined. Deliveries before that point are
    ///   no longer fresh.
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
        let deliveries = try db.rows(
            """
            SELECT \(Self.columns) FROM \(table.name)
            WHERE device_id BETWEEN $1 AND $2 AND environment = $3
                AND state = \(DeliveryState.pending.code) AND not_before IS NULL
            ORDER BY device_id LIMIT $4
            """, chunk.first, chunk.last, request.environment.code, limit)
        return try joined(deliveries, isWaiting: false)
    }

    /// Reads the deliveries in the given order.
    private func read(_ devices: [Int64]) throws -> [LeaseCandidate] {
        let deliveries = try db.rows(
            "SELECT \(Self.columns) FROM \(table.name) WHERE device_id = ANY ($1) ORDER BY device_id", devices)
        let found = try joined(deliveries, isWaiting: true)
        let places = Dictionary(uniqueKeysWithValues: found.indices.map { (found[$0].delivery.device, $0) })
        return devices.compactMap { device in places[device].map { found[$0] } }
    }

    private static let columns = "device_id, leases, attempt, excused, variant, wave, stage"

    /// Joins deliveries, in order of device, with their devices.
    private func joined(_ deliveries: PostgresRows, isWaiting: Bool) throws -> [LeaseCandidate] {
        guard !deliveries.isEmpty else { return [] }
        var devices = try LeasedDevices(db, request, of: try deliveries.map { try $0.int64(0) })
        return try deliveries.map { row in
            try candidate(row, try devices.next(try row.int64(0)), isWaiting: isWaiting)
        }
    }

    private func candidate(
        _ row: PostgresRow, _ device: LeasedDevices.Device?, isWaiting: Bool
    ) throws -> LeaseCandidate {
        let delivery = LeasedDelivery(
            device: try row.int64(0), generation: device?.generation ?? 0, leaseNumber: try row.int(1) + 1,
            attempt: try row.int(2) + 1, excused: try row.int(3), token: try device?.token ?? [],
            locale: try device?.locale, fields: try device?.fields ?? request.fields.map { _ in nil },
            badge: (try device?.badge ?? 0) + request.badgeIncrement, isProven: device?.isProven ?? false,
            variant: try row.intOrNil(4), wave: try row.timestampOrNil(5), stage: try row.intOrNil(6))
        return LeaseCandidate(
            status: try device?.status, environment: try device?.environment, isWaiting: isWaiting,
            zone: try device?.zone, user: try device?.user, delivery: delivery)
    }
}

/// A range of the frozen deliveries, with the point up to which it was leased.
struct FreshChunk: Hashable {
    /// The first device that was not leased before.
    let first: Int64
    /// The first device that remains fresh after this lease.
    var next: Int64
    let last: Int64

    init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
        next = first
    }

    /// - Parameters:
    ///   - device: the last device examined; `nil` if there was none.
    ///   - isWhole: whether no fresh delivery follows in the chunk.
    func lookedAt(_ device: Int64?, isWhole: Bool) -> FreshChunk {
        var looked = self
        looked.next = isWhole ? last + 1 : device.map { $0 + 1 } ?? first
        return looked
    }

    /// Returns the chunk in which `device` and all devices after it stay fresh.
    func cut(before device: Int64) -> FreshChunk {
        var cut = self
        cut.next = max(first, min(next, device))
        return cut
    }
}

/// A position in the index of waiting deliveries. Due deliveries are leased in the order of this index.
struct DueBound: Hashable {
    static let start = DueBound(notBefore: .min, device: .min)

    var notBefore: Int64
    var device: Int64
}

/// The positions where the due deliveries begin, by run and environment, as this process last found them.
///
/// Each lease leaves dead entries in the index, which stay as long as an old snapshot is open. A scan from the start
/// would read all of them each time. A delivery may become due before the bound, so one scan every few seconds
/// begins at the start.
final class DueBounds: Sendable {
    static let wholeEvery: Duration = .seconds(5)
    /// The maximum number of bounds. The bound of a run that ends in another process stays here, so all bounds are
    /// removed when there are this many.
    private static let countMax = 1_000

    private struct Key: Hashable {
        var run: Int64
        var environment: PushEnvironment

        init(_ request: LeaseRequest) { (run, environment) = (request.run, request.environment) }
    }

    private struct Entry {
        var bound: DueBound
        /// The time of the last scan that began at the start.
        var wholeAt: ContinuousClock.Instant
    }

    private let entries = Mutex<[Key: Entry]>([:])

    /// Returns the position at which the next scan begins.
    func next(_ request: LeaseRequest, at now: ContinuousClock.Instant = .now) -> DueBound {
        entries.withLock { entries in
            if let entry = entries[Key(request)], now - entry.wholeAt < Self.wholeEvery { return entry.bound }
            if entries.count >= Self.countMax { entries.removeAll() }
            entries[Key(request), default: Entry(bound: .start, wholeAt: now)].wholeAt = now
            return .start
        }
    }

    func forget(run: Int64) { entries.withLock { entries in entries = entries.filter { $0.key.run != run } } }

    /// Records that no delivery before the bound is both due and unlocked.
    func found(_ bound: DueBound?, _ request: LeaseRequest) {
        guard let bound else { return }
        entries.withLock { $0[Key(request)]?.bound = bound }
    }
}
