package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func deliveries(
        of run: Int64, _ filter: DeliveryFilter, after device: Int64, limit: Int
    ) async throws -> DeliveryPage {
        try await read { db in
            _ = try RunRow.require(db, run)
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            return try DeliveryPages(db, run: run, filter).page(after: device, limit: limit)
        }
    }
}

/// Looks for the next deliveries of a run: first their devices, by the index or the rows that lead to them soonest, then
/// what is shown of them.
private struct DeliveryPages {
    /// Devices found, in order, and where to go on; nil: there are no more.
    private typealias Found = (devices: [Int64], next: Int64?)

    private let db: PostgresSession
    private let table: DeliveryTable
    private let filter: DeliveryFilter
    /// Device to the number of its lease.
    private let leased: [Int64: Int]

    init(_ db: PostgresSession, run: Int64, _ filter: DeliveryFilter) throws {
        self.db = db
        self.filter = filter
        table = DeliveryTable(run: run)
        leased = try DeliveryTally.leased(db, run: run)
    }

    func page(after device: Int64, limit: Int) throws -> DeliveryPage {
        let found = try find(after: device, limit: limit)
        return DeliveryPage(entries: try entries(found.devices), next: found.next)
    }

    private func find(after device: Int64, limit: Int) throws -> Found {
        switch filter.standing {
        case .leased: return try inFlight(after: device, limit: limit)
        case .rejected, .unknown, .suppressed:
            guard let state = filter.standing?.state, try table.hasFailedIndex(db) else { break }
            return try failed(state, after: device, limit: limit)
        case .pending, .accepted, nil: break
        }
        return try scan(after: device, limit: limit)
    }

    /// Along the index of what failed, which has each reason's devices in order: of several the nearest are taken.
    private func failed(_ state: DeliveryState, after device: Int64, limit: Int) throws -> Found {
        let reasons: [String?] = try filter.reason.map { [$0] } ?? reasons(of: state)
        var devices: [Int64] = []
        for reason in reasons { devices += try failed(state, reason, after: device, limit: limit + 1) }
        devices.sort()
        let page = Array(devices.prefix(limit))
        return (page, devices.count > limit ? page.last : nil)
    }

    private func failed(_ state: DeliveryState, _ reason: String?, after device: Int64, limit: Int) throws -> [Int64] {
        try db.all(
            """
            SELECT device_id FROM \(table.name)
            WHERE state NOT IN (0, 1) AND state = \(state.code) AND \(reason == nil ? "reason IS NULL AND $1::text IS NULL" : "reason = $1")
                AND device_id > $2
            ORDER BY device_id LIMIT $3
            """, reason, device, limit
        ) { try $0.int64(0) }
    }

    /// Hops from one reason to the next: there are a few dozen at most, whatever the size of the run.
    private func reasons(of state: DeliveryState) throws -> [String?] {
        var reasons: [String?] = try failed(state, nil, after: 0, limit: 1).isEmpty ? [] : [nil]
        var last = ""
        while let reason = try db.first(
            """
            SELECT reason FROM \(table.name) WHERE state NOT IN (0, 1) AND state = \(state.code) AND reason > $1
            ORDER BY reason LIMIT 1
            """, last, read: { try $0.text(0) })
        {
            reasons.append(reason)
            last = reason
        }
        return reasons
    }

    private func inFlight(after device: Int64, limit: Int) throws -> Found {
        let candidates = leased.keys.filter { $0 > device }.sorted()
        let rows = try db.rows(
            """
            SELECT device_id, leases, reason FROM \(table.name)
            WHERE device_id = ANY ($1) AND state = \(DeliveryState.pending.code) ORDER BY device_id
            """, candidates)
        var devices: [Int64] = []
        for row in rows {
            let candidate = try row.int64(0)
            guard try leased[candidate] == row.int(1) + 1, try filter.reason == nil || row.textOrNil(2) == filter.reason
            else { continue }
            if devices.count == limit { return (devices, devices.last) }
            devices.append(candidate)
        }
        return (devices, nil)
    }

    /// Along the primary key, so many rows at most.
    private func scan(after device: Int64, limit: Int) throws -> Found {
        let rows = try db.rows(
            "SELECT device_id, state, reason, leases FROM \(table.name) WHERE device_id > $1 ORDER BY device_id LIMIT $2",
            device, DeliveryFilter.rowsMax)
        var devices: [Int64] = []
        var last = device
        for row in rows {
            if devices.count == limit { return (devices, last) }
            last = try row.int64(0)
            if try isAskedFor(row) { devices.append(last) }
        }
        return (devices, rows.count == DeliveryFilter.rowsMax ? last : nil)
    }

    private func isAskedFor(_ row: PostgresRow) throws -> Bool {
        if let reason = filter.reason, try row.textOrNil(2) != reason { return false }
        let state = try row.int64(1)
        switch filter.standing {
        case .accepted: return state == DeliveryState.accepted.code
        case .pending:
            return try state == DeliveryState.pending.code && leased[row.int64(0)] != row.int(3) + 1
        case .rejected, .unknown, .suppressed: return state == filter.standing?.state?.code
        case .leased, nil: return true
        }
    }

    private func entries(_ devices: [Int64]) throws -> [DeliveryPage.Entry] {
        guard !devices.isEmpty else { return [] }
        return try db.all(
            """
            SELECT \(OutcomeColumns.sql), delivery.not_before, delivery.leases
            FROM \(table.name) AS delivery LEFT JOIN device ON device.id = delivery.device_id
            WHERE delivery.device_id = ANY ($1) ORDER BY delivery.device_id
            """, devices
        ) { row in
            let outcome = try OutcomeColumns.outcome(row)
            let isPending = outcome.state == .pending
            let notBefore = NotBefore.moment(try row.int64OrNil(OutcomeColumns.count))
            return DeliveryPage.Entry(
                outcome: outcome,
                isLeased: try isPending && leased[outcome.device] == row.int(OutcomeColumns.count + 1) + 1,
                notBefore: isPending ? notBefore : nil)
        }
    }
}

extension DeliveryStanding {
    /// Nil for those that two of a state have.
    fileprivate var state: DeliveryState? {
        switch self {
        case .rejected: .rejected
        case .unknown: .unknown
        case .suppressed: .suppressed
        case .accepted: .accepted
        case .pending, .leased: nil
        }
    }
}
