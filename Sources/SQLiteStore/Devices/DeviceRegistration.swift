import GRDB
import Store
import Model

/// The rules of ``Store/importDevices(_:now:dryRun:)``, one record at a time, inside one transaction.
struct DeviceRegistration {
    enum Effect {
        case inserted, updated, tokenReplaced, merged, unchanged
    }

    private let db: Database
    private let now: Timestamp
    private let identity: DeviceIdentity
    private var profile: DeviceProfileStatements
    private var topics: [String: Int64] = [:]

    init(_ db: Database, now: Timestamp) throws {
        self.db = db
        self.now = now
        identity = try DeviceIdentity(db)
        profile = try DeviceProfileStatements(db)
    }

    mutating func register(_ record: DeviceRecord) throws -> Effect {
        let topic = try id(ofTopic: record.topic)
        let holder = try identity.device(token: record.token, environment: record.environment, topic: topic)
        let installation = try record.installationID.flatMap { try identity.device(installation: $0, topic: topic) }
        switch (installation, holder) {
        case (nil, nil):
            let device = try profile.insert(record, topic: topic)
            try addTags(record.tags ?? [], to: device)
            return .inserted
        case (nil, let known?):
            // The token has gone to another installation since this record was made.
            if known.installation != nil, record.installationID != nil, known.isNewer(than: record) {
                return .unchanged
            }
            return try update(known.id, with: record) ? .updated : .unchanged
        case (let known?, nil):
            return try replaceToken(of: known, with: record)
        case (let known?, let holder?):
            if known.id == holder.id { return try update(known.id, with: record) ? .updated : .unchanged }
            return try merge(holder, into: known, with: record)
        }
    }

    private mutating func replaceToken(of known: DeviceIdentity.Known, with record: DeviceRecord) throws -> Effect {
        guard !known.isNewer(than: record) else { return try update(known.id, with: record) ? .updated : .unchanged }
        try setToken(of: known.id, to: record)
        _ = try update(known.id, with: record)
        return .tokenReplaced
    }

    private mutating func merge(
        _ holder: DeviceIdentity.Known, into known: DeviceIdentity.Known, with record: DeviceRecord
    ) throws -> Effect {
        guard !known.isNewer(than: record), !holder.isNewer(than: record) else {
            return try update(known.id, with: record) ? .updated : .unchanged
        }
        try DeviceMerge(db, now: now).absorb(holder.id, into: known.id)
        try setToken(of: known.id, to: record)
        _ = try update(known.id, with: record)
        return .merged
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
                status = 0, status_reason = NULL, status_at = NULL
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
