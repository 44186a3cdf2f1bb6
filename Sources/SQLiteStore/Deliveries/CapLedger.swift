import GRDB
import Model
import RelationalStore
import Store

/// The visible pushes that frequency caps count: those that were sent, or may have been. It works in the transaction
/// of `db`; see ``Store/CapUsage``.
struct CapLedger {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Reads what the caps allow for these candidates. The lease then adds its reservations to the result.
    func open(
        _ request: CapRequest, _ candidates: [[LeaseCandidate]], run: Int64, at now: Timestamp,
        after steps: [ClockStep], gap: RestoreGap?
    ) throws -> CapLease {
        var classes = try db.capClasses()
        if classes[request.rule.code] == nil {
            try record(request.rule)
            classes[request.rule.code] = request.rule.pushClass
        }
        var usage = CapUsage()
        let rows = try CapUsageStatement(db)
        for some in candidates {
            for index in some.indices {
                try rows.read(.device(some[index].delivery.device), into: &usage)
                guard request.rule.asksForUser else { continue }
                let person = request.person(some[index].user)
                if person != 0 { try rows.read(CapKey(.person, person), into: &usage) }
            }
        }
        let policy = CapPolicy(request, classes: classes, at: now, after: steps, gap: gap)
        return CapLease(request, policy, usage, run: run, at: now)
    }

    func settle(_ outcomes: [CapOutcome], run: Int64, at now: Timestamp) throws {
        guard !outcomes.isEmpty else { return }
        var usage = CapUsage()
        let rows = try CapUsageStatement(db)
        for outcome in outcomes { try rows.read(.device(outcome.device), into: &usage) }
        for person in usage.persons(of: outcomes, run: run) { try rows.read(person, into: &usage) }
        usage.settle(outcomes, run: run, at: now)
        try write(usage)
    }

    /// Returns the devices that have a push that may still count for a cap.
    func counting(_ devices: some Sequence<Int64>, at now: Timestamp) throws -> Set<Int64> {
        var usage = CapUsage()
        return try Set(
            devices.filter { device in
                try read([.device(device)], into: &usage)
                return usage.holds(device, since: now - FrequencyCap.windowMax)
            })
    }

    /// Records whether the run sends only under caps from now on. Call it after the lease is recorded. A request in
    /// flight without caps means that the run does not.
    func note(_ run: Int64, isCapped: Bool, at now: Timestamp) throws {
        let change = try RowStatement(
            db,
            isCapped
                ? """
                UPDATE run SET capped_since = iif(accepted + unknown = 0, 0, :now + 1)
                WHERE id = :run AND capped_since IS NULL
                    AND NOT EXISTS (SELECT 1 FROM lease WHERE run_id = :run AND is_capped = 0)
                """ : "UPDATE run SET capped_since = NULL WHERE id = :run AND capped_since IS NOT NULL")
        try change.bind(run, change.parameter(":run"))
        if isCapped { try change.bind(now.milliseconds, change.parameter(":now")) }
        try change.run()
    }

    /// Reads the rows of the keys. A row that is already in `usage` is not read again. A missing row has no pushes.
    func read(_ keys: [CapKey], into usage: inout CapUsage) throws {
        let rows = try CapUsageStatement(db)
        for key in keys { try rows.read(key, into: &usage) }
    }

    func write(_ usage: CapUsage) throws {
        let (writing, deleting) = (
            try RowStatement(
                db, "REPLACE INTO cap_ledger (kind, id, latest, pushes) VALUES (:kind, :id, :latest, :pushes)"),
            try RowStatement(db, "DELETE FROM cap_ledger WHERE kind = :kind AND id = :id")
        )
        for (key, pushes) in usage.changed {
            let change = pushes.isEmpty ? deleting : writing
            try change.bind(key.kind.rawValue, change.parameter(":kind"))
            try change.bind(key.id, change.parameter(":id"))
            if !pushes.isEmpty {
                try change.bind(CapRowFormat.latest(pushes), change.parameter(":latest"))
                try change.bind(CapRowFormat.pack(pushes), change.parameter(":pushes"))
            }
            try change.run()
        }
    }

    private func record(_ rule: CapRule) throws {
        try db.execute(
            sql: "INSERT INTO cap_rule (code, topic, class, caps) VALUES (:code, :topic, :class, :caps)",
            arguments: [
                "code": Int64(rule.code), "topic": rule.topic, "class": rule.pushClass, "caps": try rule.capsJSON(),
            ])
    }
}

/// Reads only rows that were not read before.
private struct CapUsageStatement {
    private let rows: RowStatement
    private let kind, id: Int32

    init(_ db: Database) throws {
        rows = try RowStatement(db, "SELECT pushes FROM cap_ledger WHERE kind = :kind AND id = :id")
        (kind, id) = (rows.parameter(":kind"), rows.parameter(":id"))
    }

    func read(_ key: CapKey, into usage: inout CapUsage) throws {
        guard !usage.has(key) else { return }
        defer { rows.reset() }
        try rows.bind(key.kind.rawValue, kind)
        try rows.bind(key.id, id)
        usage.read(key, try rows.step() ? rows.bytes(0) : [])
    }
}
