import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
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
struct DeliveryPages {
    /// Devices found, in order, and where to go on; nil: there are no more.
    private typealias Found = (devices: [Int64], next: Int64?)

    private let db: Database
    private let run: Int64
    private let filter: DeliveryFilter
    /// Device to the number of its lease.
    private let leased: [Int64: Int]

    init(_ db: Database, run: Int64, _ filter: DeliveryFilter) throws {
        self.db = db
        self.run = run
        self.filter = filter
        leased = try DeliveryTally.leased(db, run: run)
    }

    func page(after device: Int64, limit: Int) throws -> DeliveryPage {
        let found: Found =
            switch filter.standing {
            case .rejected: try failed(.rejected, after: device, limit: limit)
            case .unknown: try failed(.unknown, after: device, limit: limit)
            case .suppressed: try failed(.suppressed, after: device, limit: limit)
            case .leased: try inFlight(after: device, limit: limit)
            case .pending, .accepted, nil: try scan(after: device, limit: limit)
            }
        return DeliveryPage(entries: try entries(found.devices), next: found.next)
    }

    /// Along the index `delivery_failed`, which has each reason's devices in order: of several the nearest are taken.
    private func failed(_ state: DeliveryState, after device: Int64, limit: Int) throws -> Found {
        let reasons = try filter.reason.map { [$0] } ?? reasons(of: state)
        var devices: [Int64] = []
        for reason in reasons { devices += try failed(state, reason, after: device, limit: limit + 1) }
        devices.sort()
        let page = Array(devices.prefix(limit))
        return (page, devices.count > limit ? page.last : nil)
    }

    /// The condition of the index stands there for the planner, who takes it for no other.
    private static let failedCondition = "run_id = :run AND state NOT IN (0, 1) AND state = :state"
    static let failedSQL = """
        SELECT device_id FROM delivery INDEXED BY delivery_failed
        WHERE \(failedCondition) AND reason IS :reason AND device_id > :after ORDER BY device_id LIMIT :limit
        """

    private func failed(_ state: DeliveryState, _ reason: String?, after device: Int64, limit: Int) throws -> [Int64] {
        try Int64.fetchAll(
            db.cachedStatement(sql: Self.failedSQL),
            arguments: ["run": run, "state": state.code, "reason": reason, "after": device, "limit": limit])
    }

    static let nextReasonSQL = """
        SELECT reason FROM delivery INDEXED BY delivery_failed
        WHERE \(failedCondition) AND reason > :last ORDER BY reason LIMIT 1
        """

    /// Hops from one reason to the next: there are a few dozen at most, whatever the size of the run.
    private func reasons(of state: DeliveryState) throws -> [String?] {
        var reasons: [String?] = try failed(state, nil, after: 0, limit: 1).isEmpty ? [] : [nil]
        let next = try db.cachedStatement(sql: Self.nextReasonSQL)
        var last = ""
        while let reason = try String.fetchOne(next, arguments: ["run": run, "state": state.code, "last": last]) {
            reasons.append(reason)
            last = reason
        }
        return reasons
    }

    private func inFlight(after device: Int64, limit: Int) throws -> Found {
        let facts = try RowStatement(
            db, "SELECT state, leases, reason FROM delivery WHERE run_id = :run AND device_id = :device")
        defer { facts.reset() }
        try facts.bind(run, facts.parameter(":run"))
        var devices: [Int64] = []
        for (candidate, number) in leased.filter({ $0.key > device }).sorted(by: { $0.key < $1.key }) {
            facts.reset()
            try facts.bind(candidate, facts.parameter(":device"))
            guard try facts.step(), facts.int64(0) == DeliveryState.pending.code, number == facts.int(1) + 1,
                filter.reason == nil || facts.text(2) == filter.reason
            else { continue }
            if devices.count == limit { return (devices, devices.last) }
            devices.append(candidate)
        }
        return (devices, nil)
    }

    /// Along the primary key, so many rows at most.
    private func scan(after device: Int64, limit: Int) throws -> Found {
        let rows = try RowStatement(
            db,
            """
            SELECT device_id, state, reason, leases FROM delivery NOT INDEXED
            WHERE run_id = :run AND device_id > :after ORDER BY device_id LIMIT :rows
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(device, rows.parameter(":after"))
        try rows.bind(Int64(DeliveryFilter.rowsMax), rows.parameter(":rows"))
        var devices: [Int64] = []
        var (looked, last) = (0, device)
        while try rows.step() {
            if devices.count == limit { return (devices, last) }
            looked += 1
            last = rows.int64(0)
            if isAskedFor(rows) { devices.append(last) }
        }
        return (devices, looked == DeliveryFilter.rowsMax ? last : nil)
    }

    private func isAskedFor(_ rows: RowStatement) -> Bool {
        if let reason = filter.reason, rows.text(2) != reason { return false }
        let state = rows.int64(1)
        switch filter.standing {
        case .accepted: return state == DeliveryState.accepted.code
        case .pending:
            return state == DeliveryState.pending.code && leased[rows.int64(0)] != rows.int(3) + 1
        default: return true
        }
    }

    private func entries(_ devices: [Int64]) throws -> [DeliveryPage.Entry] {
        guard !devices.isEmpty else { return [] }
        let rows = try RowStatement(
            db,
            """
            SELECT \(OutcomeColumns.sql), delivery.not_before, delivery.leases
            FROM json_each(:devices) AS asked
            CROSS JOIN delivery ON delivery.run_id = :run AND delivery.device_id = asked.value
            LEFT JOIN device ON device.id = delivery.device_id
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(StoredJSON.array(devices), rows.parameter(":devices"))
        var entries: [DeliveryPage.Entry] = []
        while try rows.step() {
            let outcome = OutcomeColumns.outcome(rows)
            let isPending = outcome.state == .pending
            let notBefore = rows.int64OrNil(OutcomeColumns.count)
            entries.append(
                DeliveryPage.Entry(
                    outcome: outcome,
                    isLeased: isPending && leased[outcome.device] == rows.int(OutcomeColumns.count + 1) + 1,
                    notBefore: isPending ? NotBefore.moment(notBefore) : nil))
        }
        return entries
    }
}
