import Model
import Store
import RelationalStore

/// Registers a batch of records by the rules of ``DeviceRegistry/importDevices(_:now:dryRun:)``, in one transaction.
///
/// All devices that the records may mean are read first. Then the records are decided one by one, in memory. The
/// changes are collected, and a few statements write all of them; see ``DeviceChanges``. In two cases the collected
/// changes must be written before a record is decided:
///
/// - The record names a token or an installation that a device of this batch gave up.
/// - Two stored devices are merged.
///
/// A registration locks the rows of its topics. If two registrations have a topic in common, the second waits, and
/// then reads what the first has written. So no other registration changes the keys of these devices in the
/// meantime. Another transaction may still delete a device. The write then throws a lost race, and the transaction
/// restarts.
struct DeviceRegistration {
    typealias Effect = RegisteredDevice.Effect

    /// The effect of a record, and the index of its device in ``known``.
    typealias Registered = (effect: Effect, place: Int)

    private let db: PostgresSession
    private let now: Timestamp
    private let isDry: Bool
    private let topics: [String: Int64]
    private(set) var known: KnownDevices
    private var changes = DeviceChanges()

    /// - Parameters:
    ///   - records: all records that will be registered, from ``DeviceTexts``.
    ///   - isDry: whether to write and lock nothing.
    init(_ db: PostgresSession, _ records: [DeviceRecord], now: Timestamp, isDry: Bool = false) throws {
        self.db = db
        self.now = now
        self.isDry = isDry
        let names = Set(records.map(\.topic)).sorted()
        topics = try isDry ? TopicRows(db).known(names) : TopicRows(db).held(names)
        known = KnownDevices()
        for device in try MeantDevices(db, topics).find(records) { known.add(device) }
    }

    mutating func register(_ record: DeviceRecord) throws -> Registered {
        if known.isGivenUp(record) { try flush() }
        let decision = RegistrationPolicy.decide(record, holder: known.holder(of: record)) { known.named(by: record) }
        switch decision {
        case .insert: return insert(record)
        case .confirm(let device): return confirm(device, with: record)
        case .update(let device): return (update(Int(device.id), with: record) ? .updated : .unchanged, Int(device.id))
        case .replaceToken(let device): return try replaceToken(of: device, with: record)
        case .merge(let holder, let device): return try merge(holder, into: device, with: record)
        case .leave(let device): return (.unchanged, Int(device.id))
        }
    }

    /// Writes the collected changes. Call it after the last record.
    mutating func flush() throws {
        defer {
            changes = DeviceChanges()
            known.forgetGivenUp()
        }
        guard !isDry else { return }
        for (place, id) in try changes.write(known, topics, now: now, db) { known.setID(id, of: place) }
    }

    private mutating func insert(_ record: DeviceRecord) -> Registered {
        var record = record
        record.tags = Set(record.tags ?? []).sorted()
        let place = known.add(
            StoredDevice(
                id: KnownDevices.unwritten, record: record, generation: 1, status: .active, statusReason: nil,
                statusAt: nil, badge: record.badge ?? 0, isProven: false))
        changes.inserted.append(place)
        if record.registeredAt == nil { changes.heard.insert(place) }
        return (.inserted, place)
    }

    private mutating func confirm(_ device: RegistrationPolicy.Known, with record: DeviceRecord) -> Registered {
        let place = Int(device.id)
        if device.isHeardOf(by: record) { changes.heard.insert(place) }
        return (update(place, with: record) ? .updated : .unchanged, place)
    }

    private mutating func update(_ place: Int, with record: DeviceRecord) -> Bool {
        guard known.update(place, with: record) else { return false }
        // A device that is not written yet will be inserted with its latest values.
        if known.isWritten(place) { changes.update(place, with: record) }
        return true
    }

    private mutating func replaceToken(
        of device: RegistrationPolicy.Known, with record: DeviceRecord
    ) throws -> Registered {
        let place = Int(device.id)
        // Each replaced token has its own row in the history.
        if !known.isWritten(place) || changes.tokens.contains(place) { try flush() }
        known.setToken(of: place, to: record)
        changes.tokens.insert(place)
        _ = confirm(device, with: record)
        return (.tokenReplaced, place)
    }

    private mutating func merge(
        _ holder: RegistrationPolicy.Known, into device: RegistrationPolicy.Known, with record: DeviceRecord
    ) throws -> Registered {
        try flush()
        let (gone, kept) = (Int(holder.id), Int(device.id))
        if !isDry { try DeviceMerge(db, now: now).absorb(known[gone].id, into: known[kept].id) }
        known.absorb(gone, into: kept)
        _ = try replaceToken(of: device, with: record)
        return (.merged, kept)
    }
}

/// Converts records to the form in which they are stored.
struct DeviceTexts {
    private var texts = DeviceProfileTexts()

    mutating func stored(_ record: DeviceRecord) -> DeviceRecord {
        var record = record.storable
        record.locale = texts.locale(record.locale)
        return record
    }
}

/// Reads, creates and locks the rows of topics.
struct TopicRows {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Returns the ids of the topics that exist.
    func known(_ names: [String]) throws -> [String: Int64] {
        try ids("SELECT id, name FROM topic WHERE name = ANY ($1)", names)
    }

    /// Creates missing topics, and locks all topics until the transaction ends. Returns their ids.
    func held(_ names: [String]) throws -> [String: Int64] {
        let known = try locked(names)
        guard known.count < names.count else { return known }
        try db.execute(
            "INSERT INTO topic (name) SELECT unnest($1::text[]) ON CONFLICT (name) DO NOTHING",
            names.filter { known[$0] == nil })
        return try locked(names)
    }

    private func locked(_ names: [String]) throws -> [String: Int64] {
        try ids("SELECT id, name FROM topic WHERE name = ANY ($1) ORDER BY id FOR NO KEY UPDATE", names)
    }

    private func ids(_ statement: SQLStatement, _ names: [String]) throws -> [String: Int64] {
        Dictionary(uniqueKeysWithValues: try db.all(statement, names) { (try $0.text(1), try $0.int64(0)) })
    }
}

/// Finds the stored devices that records may mean.
struct MeantDevices {
    private let db: PostgresSession
    private let topics: [String: Int64]

    init(_ db: PostgresSession, _ topics: [String: Int64]) {
        self.db = db
        self.topics = topics
    }

    func find(_ records: [DeviceRecord]) throws -> [StoredDevice] {
        let ids = try ids(of: records)
        guard !ids.isEmpty else { return [] }
        return try StoredDevices(db).all(where: "device.id = ANY ($1)", ids)
    }

    /// Returns the ids of the matching devices. Looks each key up in the index, even if the planner prefers to read the
    /// whole table once.
    private func ids(of records: [DeviceRecord]) throws -> [Int64] {
        let records = records.filter { topics[$0.topic] != nil }
        guard !records.isEmpty else { return [] }
        let named = records.filter { $0.installationID != nil }
        return try db.all(
            """
            SELECT found.id FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS given (token, environment, topic),
                LATERAL (
                    SELECT id FROM device
                    WHERE token = given.token AND environment = given.environment AND topic_id = given.topic LIMIT 1
                ) AS found
            UNION
            SELECT found.id FROM unnest($4::text[], $5::bigint[]) AS given (installation, topic),
                LATERAL (
                    SELECT id FROM device WHERE installation_id = given.installation AND topic_id = given.topic LIMIT 1
                ) AS found
            """, records.map(\.token.bytes), records.map(\.environment.code), records.map { topics[$0.topic] ?? 0 },
            named.map { $0.installationID ?? "" }, named.map { topics[$0.topic] ?? 0 }
        ) { try $0.int64(0) }
    }
}
