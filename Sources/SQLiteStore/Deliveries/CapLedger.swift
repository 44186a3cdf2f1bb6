import GRDB
import Model
import RelationalStore
import Store

/// The visible pushes under a frequency cap that left, or may have, in the transaction of `db`; see ``Store/CapBook``.
struct CapLedger {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// What the caps say of these candidates, and are to reserve.
    func open(
        _ request: CapRequest, _ candidates: [[LeaseCandidate]], run: Int64, at now: Timestamp,
        after steps: [ClockStep], gap: RestoreGap?
    ) throws -> CapLease {
        var classes = try classes()
        if classes[request.rule.code] == nil {
            try record(request.rule)
            classes[request.rule.code] = request.rule.pushClass
        }
        var book = CapBook()
        let rows = try PageStatement(db)
        for some in candidates {
            for index in some.indices {
                try rows.read(.device(some[index].delivery.device), into: &book)
                guard request.rule.asksForUser else { continue }
                let person = request.person(some[index].user)
                if person != 0 { try rows.read(CapKey(.person, person), into: &book) }
            }
        }
        let policy = CapPolicy(request, classes: classes, at: now, after: steps, gap: gap)
        return CapLease(request, policy, book, run: run, at: now)
    }

    func settle(_ outcomes: [CapOutcome], run: Int64, at now: Timestamp) throws {
        guard !outcomes.isEmpty else { return }
        var book = CapBook()
        let rows = try PageStatement(db)
        for outcome in outcomes { try rows.read(.device(outcome.device), into: &book) }
        for person in book.persons(of: outcomes, run: run) { try rows.read(person, into: &book) }
        book.settle(outcomes, run: run, at: now)
        try write(book)
    }

    func story(of device: StoredDevice) throws -> [DeviceStory.CappedPush] {
        let person = device.record.userID.map { CapKey.person(topic: device.record.topic, user: $0) } ?? 0
        var book = CapBook()
        try read(CapBook.keys(device: device.id, person: person), into: &book)
        return book.story(device: device.id, person: person, classes: try classes())
    }

    /// Those of the devices of which a push may still count for a cap.
    func counting(_ devices: some Sequence<Int64>, at now: Timestamp) throws -> Set<Int64> {
        var book = CapBook()
        return try Set(
            devices.filter { device in
                try read([.device(device)], into: &book)
                return book.holds(device, since: now - FrequencyCap.windowMax)
            })
    }

    /// Whether from now on all that is sent of a run is leased under caps. To be called when a lease is on record: what is
    /// still on its way without caps tells that it is not.
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

    /// Nothing in these rows can count any more: all of it is older than two of the longest windows, however the clock was
    /// set meanwhile. From then on they prove nothing.
    func prune(at now: Timestamp) throws {
        let past = RollingWindow(
            limit: 1, length: FrequencyCap.windowMax, for: .frequencyCap, at: now,
            after: try ClockRecord(db).latestSteps()
        ).forgottenUpTo
        try db.execute(sql: "DELETE FROM cap_ledger WHERE latest < :past", arguments: ["past": past.milliseconds])
        try db.execute(
            sql: """
                UPDATE run SET capped_since = iif(finished_at < :past, NULL, :past)
                WHERE capped_since < :past AND created_at < :past
                """, arguments: ["past": past.milliseconds])
    }

    /// Rows that were read before are left as they are; one that is not there has no pushes.
    func read(_ keys: [CapKey], into book: inout CapBook) throws {
        let rows = try PageStatement(db)
        for key in keys { try rows.read(key, into: &book) }
    }

    func write(_ book: CapBook) throws {
        let (writing, deleting) = (
            try RowStatement(
                db, "REPLACE INTO cap_ledger (kind, id, latest, pushes) VALUES (:kind, :id, :latest, :pushes)"),
            try RowStatement(db, "DELETE FROM cap_ledger WHERE kind = :kind AND id = :id")
        )
        for (key, pushes) in book.changed {
            let change = pushes.isEmpty ? deleting : writing
            try change.bind(key.kind.rawValue, change.parameter(":kind"))
            try change.bind(key.id, change.parameter(":id"))
            if !pushes.isEmpty {
                try change.bind(CapPage.latest(pushes), change.parameter(":latest"))
                try change.bind(CapPage.pack(pushes), change.parameter(":pushes"))
            }
            try change.run()
        }
    }

    /// By the code of their rule.
    func classes() throws -> [UInt32: String] {
        let rows = try RowStatement(db, "SELECT code, class FROM cap_rule")
        defer { rows.reset() }
        var classes: [UInt32: String] = [:]
        while try rows.step() { classes[UInt32(truncatingIfNeeded: rows.int64(0))] = rows.text(1) }
        return classes
    }

    private func record(_ rule: CapRule) throws {
        try db.execute(
            sql: "INSERT INTO cap_rule (code, topic, class, caps) VALUES (:code, :topic, :class, :caps)",
            arguments: [
                "code": Int64(rule.code), "topic": rule.topic, "class": rule.pushClass, "caps": try rule.capsJSON(),
            ])
    }
}

/// Reads rows that were not read before.
private struct PageStatement {
    private let rows: RowStatement
    private let kind, id: Int32

    init(_ db: Database) throws {
        rows = try RowStatement(db, "SELECT pushes FROM cap_ledger WHERE kind = :kind AND id = :id")
        (kind, id) = (rows.parameter(":kind"), rows.parameter(":id"))
    }

    func read(_ key: CapKey, into book: inout CapBook) throws {
        guard !book.has(key) else { return }
        defer { rows.reset() }
        try rows.bind(key.kind.rawValue, kind)
        try rows.bind(key.id, id)
        book.read(key, try rows.step() ? rows.bytes(0) : [])
    }
}
