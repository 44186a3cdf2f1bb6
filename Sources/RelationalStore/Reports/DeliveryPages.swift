package import Model
package import Store

extension RelationalStore {
    package func deliveries(
        of run: Int64, _ filter: DeliveryFilter, after device: Int64, limit: Int
    ) async throws -> DeliveryPage {
        try await snapshot(.expensive) { db in
            _ = try RunRow.require(db, run)
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            return try DeliveryPages(db, run: run, filter).page(after: device, limit: limit)
        }
    }
}

/// Finds the next deliveries of a run. It first finds their devices, by the fastest index or by a scan of rows, and
/// then reads the entries to show.
package struct DeliveryPages<Session: SQLSession> {
    /// The devices found, in order, and the device after which the next page starts. The latter is `nil` if there
    /// are no more.
    private typealias Found = (devices: [Int64], next: Int64?)

    private let db: Session
    private let run: Int64
    private let filter: DeliveryFilter
    /// The lease number of each device with a delivery in flight.
    private let leased: [Int64: Int]

    init(_ db: Session, run: Int64, _ filter: DeliveryFilter) throws {
        self.db = db
        self.run = run
        self.filter = filter
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
            guard let state = filter.standing?.state, try db.hasFailedIndex(of: run) else { break }
            return try failed(state, after: device, limit: limit)
        case .pending, .accepted, nil: break
        }
        return try scan(after: device, limit: limit)
    }

    /// Finds devices along the index of failures, which has each reason's devices in order. It merges the devices of
    /// all reasons and returns the first ones.
    private func failed(_ state: DeliveryState, after device: Int64, limit: Int) throws -> Found {
        let reasons: [String?] = try filter.reason.map { [$0] } ?? reasons(of: state)
        var devices: [Int64] = []
        for reason in reasons { devices += try failed(state, reason, after: device, limit: limit + 1) }
        devices.sort()
        let page = Array(devices.prefix(limit))
        return (page, devices.count > limit ? page.last : nil)
    }

    /// Returns the clauses for failures, with the run as the first parameter. They repeat the condition of the index,
    /// because otherwise the planner does not use it.
    static func ofFailed(_ run: Int64, _ state: DeliveryState) -> String {
        """
        FROM \(Session.dialect.deliveries(of: run, "INDEXED BY delivery_failed"))
        WHERE \(Session.dialect.isOf(parameter: 1)) AND state NOT IN (0, 1) AND state = \(state.code)
        """
    }

    /// Returns the query for devices. Its parameters are the run, the device after which to start, the limit, and
    /// the reason.
    package static func failedSQL(_ run: Int64, _ state: DeliveryState, hasReason: Bool) -> SQLStatement {
        """
        SELECT device_id \(ofFailed(run, state)) AND reason \(hasReason ? "= $4" : "IS NULL") AND device_id > $2
        ORDER BY device_id LIMIT $3
        """
    }

    package static func nextReasonSQL(_ run: Int64, _ state: DeliveryState) -> SQLStatement {
        "SELECT reason \(ofFailed(run, state)) AND reason > $2 ORDER BY reason LIMIT 1"
    }

    private func failed(_ state: DeliveryState, _ reason: String?, after device: Int64, limit: Int) throws -> [Int64] {
        var values: [any SQLValue] = [run, device, limit]
        if let reason { values.append(reason) }
        return try db.all(Self.failedSQL(run, state, hasReason: reason != nil), values: values) { try $0.int64(0) }
    }

    /// Returns the reasons of a state. Skips along the index from one reason to the next, because a run of any size
    /// has at most a few dozen reasons.
    private func reasons(of state: DeliveryState) throws -> [String?] {
        var reasons: [String?] = try failed(state, nil, after: 0, limit: 1).isEmpty ? [] : [nil]
        var last = ""
        while let reason = try db.first(Self.nextReasonSQL(run, state), run, last, read: { try $0.text(0) }) {
            reasons.append(reason)
            last = reason
        }
        return reasons
    }

    private func inFlight(after device: Int64, limit: Int) throws -> Found {
        let rows = try db.all(
            """
            SELECT device_id, leases, reason FROM \(Session.dialect.deliveries(of: run))
            WHERE \(Session.dialect.isOf(parameter: 1)) AND device_id \(Session.dialect.isAny(2))
                AND state = \(DeliveryState.pending.code) ORDER BY device_id
            """, run, leased.keys.filter { $0 > device }
        ) { (device: try $0.int64(0), leases: try $0.int(1), reason: try $0.textOrNil(2)) }
        let found = rows.filter { row in
            leased[row.device] == row.leases + 1 && (filter.reason == nil || row.reason == filter.reason)
        }.map(\.device)
        let page = Array(found.prefix(limit))
        return (page, found.count > limit ? page.last : nil)
    }

    /// Scans along the primary key. It reads at most `DeliveryFilter.rowsMax` rows, and not many more than the page
    /// needs.
    private func scan(after device: Int64, limit: Int) throws -> Found {
        var devices: [Int64] = []
        var (looked, last) = (0, device)
        while looked < DeliveryFilter.rowsMax {
            let count = min(DeliveryFilter.rowsMax - looked, max(Self.rowsAtOnceMin, limit + 1 - devices.count))
            let rows = try db.all(
                """
                SELECT device_id, state, reason, leases FROM \(Session.dialect.deliveries(of: run, "NOT INDEXED"))
                WHERE \(Session.dialect.isOf(parameter: 1)) AND device_id > $2 ORDER BY device_id LIMIT $3
                """, run, last, count
            ) { row in (device: try row.int64(0), isAskedFor: try isAskedFor(row)) }
            for row in rows {
                if devices.count == limit { return (devices, last) }
                last = row.device
                if row.isAskedFor { devices.append(last) }
            }
            looked += rows.count
            if rows.count < count { return (devices, nil) }
        }
        return (devices, last)
    }

    private static var rowsAtOnceMin: Int { 500 }

    private func isAskedFor(_ row: Session.Fields) throws -> Bool {
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
            SELECT \(OutcomeColumns<Session>.sql), delivery.not_before, delivery.leases
            FROM \(Session.dialect.deliveries(of: run, as: "delivery"))
            LEFT JOIN device ON device.id = delivery.device_id
            WHERE \(Session.dialect.isOf(parameter: 1)) AND delivery.device_id \(Session.dialect.isAny(2))
            ORDER BY delivery.device_id
            """, run, devices
        ) { row in
            let outcome = try OutcomeColumns<Session>.outcome(row)
            let further = OutcomeColumns<Session>.count
            let isPending = outcome.state == .pending
            return DeliveryPage.Entry(
                outcome: outcome,
                isLeased: try isPending && leased[outcome.device] == row.int(further + 1) + 1,
                notBefore: isPending ? NotBefore.moment(try row.int64OrNil(further)) : nil)
        }
    }
}

extension DeliveryStanding {
    /// The state; `nil` for the two standings that share the pending state.
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
