import GRDB
import Store
import Model
import RelationalStore

/// Reads lease candidates, both waiting and fresh.
struct LeaseCandidates {
    private let db: Database
    private let request: LeaseRequest
    private let readsZone: Bool
    private let readsUser: Bool

    init(_ db: Database, _ request: LeaseRequest) {
        self.db = db
        self.request = request
        readsZone = request.quiet != nil
        readsUser = request.caps?.rule.asksForUser == true
    }

    /// Returns put-off deliveries that are due, longest due first.
    func due(limit: Int) throws -> [LeaseCandidate] {
        try read(
            from: "delivery INDEXED BY delivery_waiting",
            where: "delivery.not_before IS NOT NULL AND delivery.not_before <= :now ORDER BY delivery.not_before",
            limit: limit, isWaiting: true)
    }

    /// Returns deliveries that were held until their stage began, for stages up to this one.
    func held(upTo stage: Int, limit: Int) throws -> [LeaseCandidate] {
        try read(
            from: "delivery INDEXED BY delivery_waiting",
            where: """
                delivery.not_before BETWEEN \(NotBefore.held(stage: 0)) AND \(NotBefore.held(stage: stage))
                    AND delivery.not_before IS NOT NULL ORDER BY delivery.not_before
                """, limit: limit, isWaiting: true)
    }

    /// Returns deliveries after the cursor that were never put off, in order of device.
    func fresh(limit: Int) throws -> [LeaseCandidate] {
        try read(
            from: "delivery",
            where: "delivery.not_before IS NULL AND delivery.device_id > :after ORDER BY delivery.device_id",
            limit: limit, isWaiting: false)
    }

    private func read(
        from table: String, where condition: String, limit: Int, isWaiting: Bool
    ) throws -> [LeaseCandidate] {
        guard limit > 0 else { return [] }
        let rows = try statement(from: table, where: condition, limit: limit)
        defer { rows.reset() }
        var proofs = try TokenProofs(db)
        var candidates: [LeaseCandidate] = []
        candidates.reserveCapacity(limit)
        while try rows.step() {
            let isProven = try proofs.isProven(rows.int64(0), generation: rows.int(4))
            candidates.append(candidate(rows, isProven: isProven, isWaiting: isWaiting))
        }
        return candidates
    }

    private func candidate(_ rows: RowStatement, isProven: Bool, isWaiting: Bool) -> LeaseCandidate {
        let fields = request.fields.indices.map { rows.text(Int32(15 + $0)) }
        let delivery = LeasedDelivery(
            device: rows.int64(0), generation: rows.int(4), leaseNumber: rows.int(1) + 1, attempt: rows.int(2) + 1,
            excused: rows.int(8), token: rows.bytes(5), locale: rows.text(6), fields: fields, badge: rows.int(7),
            isProven: isProven, variant: rows.int64OrNil(9).map(Int.init),
            wave: Timestamp(stored: rows.int64OrNil(11)), stage: rows.int64OrNil(12).map(Int.init))
        return LeaseCandidate(
            status: rows.int64OrNil(3).map(DeviceStatus.init(code:)),
            environment: rows.int64OrNil(14).map(PushEnvironment.init(code:)), isWaiting: isWaiting,
            zone: readsZone ? rows.text(10) : nil, user: readsUser ? rows.text(13) : nil, delivery: delivery)
    }

    private func statement(from table: String, where condition: String, limit: Int) throws -> RowStatement {
        var attributes = AudienceCondition()
        let fields = request.fields.map { field in ", " + DeviceColumn(.sqlite).printed(field) { attributes.add($0) } }
        let rows = try RowStatement(
            db,
            """
            SELECT delivery.device_id, delivery.leases, delivery.attempt, device.status, device.token_generation, device.token,
                device.locale, device.badge, delivery.excused, delivery.variant,
                \(readsZone ? "device.time_zone" : "NULL"),
                delivery.wave, delivery.stage,
                \(readsUser ? "device.user_id" : "NULL"), device.environment
                \(fields.joined())
            FROM \(table)
            LEFT JOIN device ON device.id = delivery.device_id
            WHERE delivery.run_id = :run AND delivery.environment = :environment
                AND delivery.state = \(DeliveryState.pending.rawValue) AND \(condition)
            LIMIT :limit
            """)
        try rows.bind(attributes.values)
        try rows.bind(request.run, rows.parameter(":run"))
        try rows.bind(request.environment.code, rows.parameter(":environment"))
        try rows.bind(Int64(limit), rows.parameter(":limit"))
        let time = rows.parameter(":now")
        if time > 0 { try rows.bind(request.now.milliseconds, time) }
        let after = rows.parameter(":after")
        if after > 0 { try rows.bind(request.after, after) }
        return rows
    }
}
