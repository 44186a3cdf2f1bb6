import Model
import Store
import RelationalStore

/// The visible pushes that frequency caps count: those that were sent, or may have been. It works in the transaction
/// of `db`; see ``Store/CapUsage``.
struct CapLedger {
    private let db: PostgresSession

    init(_ db: PostgresSession) {
        self.db = db
    }

    /// Reads what the caps allow for these candidates. The lease then adds its reservations to the result. Until the
    /// transaction ends, no other transaction reserves for them.
    func open(
        _ request: CapRequest, _ candidates: [LeaseCandidate], run: Int64, at now: Timestamp, after steps: [ClockStep],
        gap: RestoreGap?
    ) throws -> CapLease {
        var classes = try db.capClasses()
        if classes[request.rule.code] == nil {
            try record(request.rule)
            classes[request.rule.code] = request.rule.pushClass
        }
        let keys = candidates.reduce(into: Set<CapKey>()) {
            $0.formUnion(CapUsage.keys(device: $1.delivery.device, person: request.person($1.user)))
        }
        var usage = CapUsage()
        let moment = try hold(keys, into: &usage, at: now)
        let policy = CapPolicy(request, classes: classes, at: moment, after: steps, gap: gap)
        return CapLease(request, policy, usage, run: run, at: moment)
    }

    /// Returns the devices that were merged with another one, removed or pruned before their rows were locked.
    func lost(_ devices: [Int64]) throws -> Set<Int64> {
        try Set(
            db.all(
                """
                SELECT given.id FROM unnest($1::bigint[]) AS given (id) LEFT JOIN device ON device.id = given.id
                WHERE device.id IS NULL OR device.status = \(DeviceStatus.gone.code)
                """, devices
            ) { try $0.int64(0) })
    }

    func settle(_ outcomes: [CapOutcome], run: Int64, at now: Timestamp) throws {
        guard !outcomes.isEmpty else { return }
        var usage = CapUsage()
        _ = try read(Set(outcomes.map { .device($0.device) }), into: &usage, at: now)
        let moment = try read(Set(usage.persons(of: outcomes, run: run)), into: &usage, at: now)
        usage.settle(outcomes, run: run, at: moment)
        try write(usage)
    }

    /// Returns the devices with a push that may still count for a cap.
    ///
    /// - Parameter isHeld: whether to keep other transactions from reserving for them until this one ends.
    func counting(_ devices: [Int64], at now: Timestamp, isHeld: Bool) throws -> Set<Int64> {
        var usage = CapUsage()
        let keys = Set(devices.map(CapKey.device))
        guard try !db.capClasses().isEmpty else { return [] }
        if isHeld { _ = try hold(keys, into: &usage, at: now) } else { try look(keys, into: &usage) }
        return Set(devices.filter { usage.holds($0, since: now - FrequencyCap.windowMax) })
    }

    /// Records whether the run sends only under caps from now on. Call it after the lease and the run's counts are
    /// written, because that locks the run. A lease in flight without caps means that the run does not.
    func note(_ run: Int64, isCapped: Bool, at now: Timestamp) throws {
        guard isCapped else {
            try db.execute("UPDATE run SET capped_since = NULL WHERE id = $1 AND capped_since IS NOT NULL", run)
            return
        }
        try db.execute(
            """
            UPDATE run SET capped_since = CASE WHEN accepted + unknown = 0 THEN 0 ELSE $2 END
            WHERE id = $1 AND capped_since IS NULL
                AND NOT EXISTS (SELECT 1 FROM lease WHERE run_id = $1 AND NOT is_capped)
            """, run, now + .milliseconds(1))
    }

    /// Locks the rows, and first creates missing ones, so that there is something to lock. Creates a row again if
    /// upkeep has just deleted it. Returns the time by the clock after all rows are locked.
    func hold(_ keys: Set<CapKey>, into usage: inout CapUsage, at now: Timestamp) throws -> Timestamp {
        let sorted = keys.sorted()
        while true {
            try db.execute(
                """
                INSERT INTO cap_ledger (kind, id, latest, pushes)
                SELECT kind, id, 0, '' FROM unnest($1::bigint[], $2::bigint[]) AS given (kind, id)
                ON CONFLICT DO NOTHING
                """, sorted.map(\.kind.rawValue), sorted.map(\.id))
            let moment = try read(keys, into: &usage, at: now)
            if keys.allSatisfy(usage.has) { return moment }
        }
    }

    /// Locks and reads the rows that exist, in the order in which every transaction locks them.
    func read(_ keys: Set<CapKey>, into usage: inout CapUsage, at now: Timestamp) throws -> Timestamp {
        guard !keys.isEmpty else { return try db.moment(now) }
        try fetch(
            "\(Self.selection) ORDER BY cap_ledger.kind, cap_ledger.id FOR NO KEY UPDATE OF cap_ledger", keys, &usage)
        return try db.moment(now)
    }

    /// Reads the rows without a lock.
    func look(_ keys: Set<CapKey>, into usage: inout CapUsage) throws {
        guard !keys.isEmpty else { return }
        try fetch(Self.selection, keys, &usage)
    }

    private static let selection = """
        SELECT cap_ledger.kind, cap_ledger.id, pushes FROM cap_ledger
        JOIN unnest($1::bigint[], $2::bigint[]) AS given (kind, id)
            ON cap_ledger.kind = given.kind AND cap_ledger.id = given.id
        """

    /// Plans the statement each time. A plan that was made while the ledger was empty would read the whole ledger,
    /// even after the ledger has grown.
    private func fetch(_ sql: String, _ keys: Set<CapKey>, _ usage: inout CapUsage) throws {
        let sorted = keys.sorted()
        for row in try db.rows(.once(sql), sorted.map(\.kind.rawValue), sorted.map(\.id)) {
            guard let kind = CapKey.Kind(rawValue: try row.int64(0)) else { continue }
            usage.read(CapKey(kind, try row.int64(1)), try row.bytes(2))
        }
    }

    func write(_ usage: CapUsage) throws {
        let changed = usage.changed
        guard !changed.isEmpty else { return }
        try db.execute(
            """
            UPDATE cap_ledger SET latest = given.latest, pushes = given.pushes
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS given (kind, id, latest, pushes)
            WHERE cap_ledger.kind = given.kind AND cap_ledger.id = given.id
            """, changed.map(\.key.kind.rawValue), changed.map(\.key.id),
            changed.map { CapRowFormat.latest($0.pushes) }, changed.map { CapRowFormat.pack($0.pushes) })
    }

    private func record(_ rule: CapRule) throws {
        try db.execute(
            "INSERT INTO cap_rule (code, topic, class, caps) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            Int64(rule.code), rule.topic, rule.pushClass, try rule.capsJSON())
    }
}
