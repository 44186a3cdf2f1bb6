import GRDB
import Model
import Store

/// Registers devices by the rules of ``DeviceRegistry/importDevices(_:now:dryRun:)``, one record at a time, in one
/// transaction.
struct DeviceRegistration {
    typealias Effect = RegisteredDevice.Effect

    /// The effect of a record, and the device it applied to.
    typealias Registered = (effect: Effect, device: Int64)

    private let db: Database
    private let now: Timestamp
    private let identity: DeviceIdentity
    private var profile: DeviceProfileStatements
    private var topics: [String: Int64] = [:]
    /// Devices whose token a record named, and whose registration time is unknown.
    private var heard: [Int64] = []

    init(_ db: Database, now: Timestamp) throws {
        self.db = db
        self.now = now
        identity = try DeviceIdentity(db)
        profile = try DeviceProfileStatements(db)
    }

    mutating func register(_ record: DeviceRecord) throws -> Registered {
        let topic = try id(ofTopic: record.topic)
        let holder = try identity.device(token: record.token, environment: record.environment, topic: topic)
        let decision = try RegistrationPolicy.decide(record, holder: holder) {
            try record.installationID.flatMap { try identity.device(installation: $0, topic: topic) }
        }
        switch decision {
        case .insert: return try insert(record)
        case .confirm(let known): return try confirm(known, with: record)
        case .update(let known): return (try update(known.id, with: record) ? .updated : .unchanged, known.id)
        case .replaceToken(let known): return try replaceToken(of: known, with: record)
        case .merge(let holder, let known): return try merge(holder, into: known, with: record)
        case .leave(let known): return (.unchanged, known.id)
        }
    }

    /// Inserts the record as a new device, without a look-up.
    mutating func insert(_ record: DeviceRecord) throws -> Registered {
        let device = try profile.insert(record, topic: id(ofTopic: record.topic))
        if record.registeredAt == nil { heard.append(device) }
        try addTags(record.tags ?? [], to: device)
        return (.inserted, device)
    }

    /// Updates the device from a record that names the device's current token.
    private mutating func confirm(_ known: RegistrationPolicy.Known, with record: DeviceRecord) throws -> Registered {
        if known.isHeardOf(by: record) { heard.append(known.id) }
        return (try update(known.id, with: record) ? .updated : .unchanged, known.id)
    }

    /// Records the devices in `heard`. Call it after the last record. It uses one statement, because most imports name
    /// thousands of devices and change few.
    mutating func finish() throws {
        guard !heard.isEmpty else { return }
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO token_heard (device_id, heard_at) SELECT value, :now FROM json_each(:devices) WHERE TRUE
            ON CONFLICT (device_id) DO UPDATE SET heard_at = excluded.heard_at WHERE heard_at < excluded.heard_at
            """)
        try insertion.bind(now.milliseconds, insertion.parameter(":now"))
        try insertion.bind(StoredJSON.array(heard), insertion.parameter(":devices"))
        try insertion.run()
        heard.removeAll(keepingCapacity: true)
    }

    private mutating func replaceToken(of known: RegistrationPolicy.Known, with record: DeviceRecord) throws
        -> Registered
    {
        try setToken(of: known.id, to: record)
        _ = try confirm(known, with: record)
        return (.tokenReplaced, known.id)
    }

    private mutating func merge(
        _ holder: RegistrationPolicy.Known, into known: RegistrationPolicy.Known, with record: DeviceRecord
    ) throws -> Registered {
        // Write `heard` now, because the merge deletes a device that it may contain.
        try finish()
        try DeviceMerge(db, now: now).absorb(holder.id, into: known.id)
        try setToken(of: known.id, to: record)
        _ = try confirm(known, with: record)
        return (.merged, known.id)
    }

    private func setToken(of device: Int64, to record: DeviceRecord) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO token_history (device_id, token_generation, token, environment, replaced_at)
                SELECT id, token_generation, token, environment, :now FROM device WHERE id = :device
                """
        ).execute(arguments: ["device": device, "now": now.milliseconds])
        let update = try RowStatement(
            db,
            """
            UPDATE device SET
                token = :token, environment = :environment, token_generation = token_generation + 1,
                status = \(DeviceStatus.active.code), status_reason = NULL, status_at = NULL
            WHERE id = :device
            """)
        try update.bind(device, update.parameter(":device"))
        try update.bind(record.token.bytes, update.parameter(":token"))
        try update.bind(record.environment.code, update.parameter(":environment"))
        try update.run()
    }

    private mutating func update(_ device: Int64, with record: DeviceRecord) throws -> Bool {
        let changed = try profile.update(device, with: record)
        guard let tags = record.tags else { return changed }
        let stored = try String.fetchSet(
            db.cachedStatement(sql: "SELECT name FROM tag WHERE device_id = :device"), arguments: ["device": device])
        guard stored != Set(tags) else { return changed }
        try db.cachedStatement(sql: "DELETE FROM tag WHERE device_id = :device").execute(arguments: ["device": device])
        try addTags(tags, to: device)
        return true
    }

    private func addTags(_ tags: [String], to device: Int64) throws {
        guard !tags.isEmpty else { return }
        let insertion = try RowStatement(db, "INSERT OR IGNORE INTO tag (device_id, name) VALUES (:device, :name)")
        try insertion.bind(device, insertion.parameter(":device"))
        for tag in tags {
            try insertion.bind(tag, insertion.parameter(":name"))
            try insertion.run()
        }
    }

    private mutating func id(ofTopic name: String) throws -> Int64 {
        if let known = topics[name] { return known }
        try db.execute(sql: "INSERT OR IGNORE INTO topic (name) VALUES (:name)", arguments: ["name": name])
        let id = try Int64.fetchOne(db, sql: "SELECT id FROM topic WHERE name = :name", arguments: ["name": name])
        topics[name] = id
        return id ?? 0
    }
}

/// Finds the stored devices that a record may mean.
struct DeviceIdentity {
    typealias Known = RegistrationPolicy.Known

    private let byInstallation: RowStatement
    private let byToken: RowStatement

    init(_ db: Database) throws {
        byInstallation = try RowStatement(
            db,
            """
            SELECT id, registered_at, installation_id
            FROM device WHERE installation_id = :installation AND topic_id = :topic
            """)
        byToken = try RowStatement(
            db,
            """
            SELECT id, registered_at, installation_id
            FROM device WHERE token = :token AND environment = :environment AND topic_id = :topic
            """)
    }

    func device(installation: String, topic: Int64) throws -> Known? {
        try byInstallation.bind(installation, byInstallation.parameter(":installation"))
        try byInstallation.bind(topic, byInstallation.parameter(":topic"))
        return try first(byInstallation)
    }

    func device(token: DeviceToken, environment: PushEnvironment, topic: Int64) throws -> Known? {
        try byToken.bind(token.bytes, byToken.parameter(":token"))
        try byToken.bind(environment.code, byToken.parameter(":environment"))
        try byToken.bind(topic, byToken.parameter(":topic"))
        return try first(byToken)
    }

    private func first(_ statement: RowStatement) throws -> Known? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return Known(
            id: statement.int64(0), installation: statement.text(2),
            registeredAt: Timestamp(stored: statement.int64OrNil(1)))
    }
}

/// Merges two stored devices that turn out to be one installation. The kept device inherits the tags, segments,
/// silent budget and frequency caps of the deleted device.
struct DeviceMerge {
    private let db: Database
    private let now: Timestamp

    init(_ db: Database, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Deletes `gone`. Its deliveries stay, and are suppressed when a lease reads them.
    func absorb(_ gone: Int64, into kept: Int64) throws {
        let both: StatementArguments = ["gone": gone, "kept": kept]
        try db.execute(
            sql: "INSERT OR IGNORE INTO tag (device_id, name) SELECT :kept, name FROM tag WHERE device_id = :gone",
            arguments: both)
        try db.execute(
            sql: """
                UPDATE segment SET members = members - 1 WHERE
                    EXISTS (SELECT 1 FROM segment_member WHERE segment_id = segment.id AND device_id = :gone)
                    AND EXISTS (SELECT 1 FROM segment_member WHERE segment_id = segment.id AND device_id = :kept)
                """, arguments: both)
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO segment_member (segment_id, device_id)
                SELECT segment_id, :kept FROM segment_member WHERE device_id = :gone
                """, arguments: both)
        try inheritLedger(of: gone, by: kept)
        try db.inheritFeedback(of: gone, by: kept)
        let caps = CapLedger(db)
        var usage = CapUsage()
        try caps.read([.device(gone), .device(kept)], into: &usage)
        usage.inherit(from: gone, by: kept, at: now)
        try caps.write(usage)
        try db.execute(sql: "DELETE FROM proven_token WHERE device_id = :gone", arguments: ["gone": gone])
        try db.execute(sql: "DELETE FROM device WHERE id = :gone", arguments: ["gone": gone])
    }

    /// Copies the silent ledger entries of the deleted device, with the current time as their reservation time.
    /// Their lease numbers are negative, so that they never collide with the device's own entries for the same run.
    private func inheritLedger(of gone: Int64, by kept: Int64) throws {
        let entries = try Row.fetchAll(
            db,
            sql: "SELECT run_id, settled_at FROM silent_ledger WHERE device_id = :gone",
            arguments: ["gone": gone])
        for entry in entries {
            try db.execute(
                sql: """
                    INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
                    SELECT :kept, :run, coalesce(min(min(lease_number), 0), 0) - 1, :now, coalesce(:settled, :latest)
                    FROM silent_ledger WHERE device_id = :kept AND run_id = :run
                    """,
                arguments: [
                    "kept": kept, "run": entry["run_id"] as Int64, "now": now.milliseconds,
                    "settled": entry["settled_at"] as Int64?,
                    "latest": now.milliseconds + RegistrationPolicy.flightMaxMs,
                ])
        }
    }
}
