import Model
import Store
import RelationalStore

/// The changes of a batch of records, by the indexes of the devices in ``KnownDevices``. A few statements write all
/// of them.
struct DeviceChanges {
    var inserted: [Int] = []
    /// The devices whose token was replaced.
    var tokens: Set<Int> = []
    /// The devices whose token a record named, and whose registration time is unknown.
    var heard: Set<Int> = []
    /// The merged records of each device.
    private var updates: [Int: DeviceRecord] = [:]

    mutating func update(_ place: Int, with record: DeviceRecord) {
        if updates[place]?.update(with: record) == nil {
            var record = record
            record.tags = record.tags.map { Set($0).sorted() }
            updates[place] = record
        }
    }

    /// Returns the ids of the new devices.
    func write(
        _ known: KnownDevices, _ topics: [String: Int64], now: Timestamp, _ db: PostgresSession
    ) throws -> [(place: Int, id: Int64)] {
        let rows = DeviceRows(db)
        let updates = updates.map { (id: known[$0.key].id, record: $0.value) }.sorted { $0.id < $1.id }
        let tokens = tokens.map { known[$0] }.sorted { $0.id < $1.id }
        try rows.hold(Set(updates.map(\.id) + tokens.map(\.id)).sorted())
        try rows.setTokens(tokens, now: now)
        try rows.update(updates)
        let tagged = updates.filter { $0.record.tags != nil }
        try rows.removeTags(of: tagged.map(\.id))
        let ids = try rows.insert(inserted.map { known[$0].record }, topics)
        let added = zip(inserted, ids).map { (place: $0, id: $1) }
        try rows.addTags(
            tagged.map { ($0.id, $0.record.tags ?? []) } + added.map { ($0.id, known[$0.place].record.tags ?? []) })
        let new = Dictionary(uniqueKeysWithValues: added.map { ($0.place, $0.id) })
        try rows.hear(of: heard.map { new[$0] ?? known[$0].id }.sorted(), now: now)
        return added
    }
}

/// The statements that write devices. Each statement writes many devices, in order of id.
struct DeviceRows {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Locks the devices until the transaction ends. If a device no longer exists, throws a lost race, so that the
    /// transaction restarts.
    func hold(_ ids: [Int64]) throws {
        guard !ids.isEmpty else { return }
        let found = try db.rows(
            "SELECT id FROM device WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", ids)
        guard found.count == ids.count else {
            throw PostgresError.refused(
                ServerFault(sqlstate: "40001", message: "a device was deleted while it was being registered"),
                server: db.link.server)
        }
    }

    func setTokens(_ devices: [StoredDevice], now: Timestamp) throws {
        guard !devices.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO token_history (device_id, token_generation, token, environment, replaced_at)
            SELECT id, token_generation, token, environment, $2 FROM device WHERE id = ANY ($1)
            """, devices.map(\.id), now)
        try db.execute(
            """
            UPDATE device SET
                token = given.token, environment = given.environment, token_generation = token_generation + 1,
                status = \(DeviceStatus.active.code), status_reason = NULL, status_at = NULL
            FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS given (id, token, environment)
            WHERE device.id = given.id AND device.id = ANY ($1)
            """, devices.map(\.id), devices.map(\.record.token.bytes), devices.map(\.record.environment.code))
    }

    /// Updates the fields that the records name. Changes that other transactions made to other fields stay.
    func update(_ updates: [(id: Int64, record: DeviceRecord)]) throws {
        guard !updates.isEmpty else { return }
        for update in updates { try erase(update.record.erased, of: update.id) }
        let records = updates.map(\.record)
        var texts = DeviceProfileTexts()
        try db.execute(
            """
            UPDATE device SET
                installation_id = coalesce(given.installation_id, device.installation_id),
                user_id = coalesce(given.user_id, device.user_id),
                alerts_allowed = coalesce(given.alerts_allowed, device.alerts_allowed),
                registered_at = greatest(device.registered_at, given.registered_at),
                last_seen_at = greatest(device.last_seen_at, given.last_seen_at),
                locale = coalesce(given.locale, device.locale),
                time_zone = coalesce(given.time_zone, device.time_zone),
                country = coalesce(given.country, device.country),
                app_version = coalesce(given.app_version, device.app_version),
                app_version_key = CASE WHEN given.app_version IS NULL THEN device.app_version_key
                    ELSE given.app_version_key END,
                os_version = coalesce(given.os_version, device.os_version),
                os_version_key = CASE WHEN given.os_version IS NULL THEN device.os_version_key
                    ELSE given.os_version_key END,
                model = coalesce(given.model, device.model),
                attributes = CASE WHEN given.attributes IS NULL THEN device.attributes
                    WHEN device.attributes IS NULL AND given.attributes = '{}' THEN NULL
                    WHEN given.replaces THEN given.attributes
                    ELSE coalesce(device.attributes, '{}') || given.attributes END,
                badge = coalesce(given.badge, device.badge),
                status = CASE WHEN given.registered_at > device.status_at THEN \(DeviceStatus.active.code)
                    ELSE device.status END,
                status_reason = CASE WHEN given.registered_at > device.status_at THEN NULL ELSE device.status_reason END,
                status_at = CASE WHEN given.registered_at > device.status_at THEN NULL ELSE device.status_at END
            FROM unnest(
                $1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
                $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::jsonb[],
                $16::boolean[], $17::bigint[]
            ) AS given (
                id, installation_id, user_id, alerts_allowed, registered_at, last_seen_at, locale, time_zone, country,
                app_version, app_version_key, os_version, os_version_key, model, attributes, replaces, badge
            )
            WHERE device.id = given.id AND device.id = ANY ($1)
            """, updates.map(\.id), records.map(\.installationID), records.map(\.userID), records.map(\.alertsAllowed),
            records.map(\.registeredAt), records.map(\.lastSeenAt), records.map(\.locale), records.map(\.timeZone),
            records.map(\.country), records.map(\.appVersion), records.map { texts.versionKey($0.appVersion) },
            records.map(\.osVersion), records.map { texts.versionKey($0.osVersion) }, records.map(\.model),
            records.map(\.attributeText), records.map(\.replacesAttributes), records.map { $0.badge.map(Int64.init) })
    }

    private func erase(_ fields: Set<DeviceRecord.Erasure>, of device: Int64) throws {
        var parts = fields.flatMap(\.columns).sorted().map { "\($0) = NULL" }
        var names: [String] = []
        for case .attribute(let name) in fields { names.append(StorableText.without(name)) }
        if fields.contains(.attributes) {
            parts.append("attributes = '{}'")
        } else if !names.isEmpty {
            parts.append("attributes = attributes - $2::text[]")
        }
        guard !parts.isEmpty else { return }
        try db.execute(
            .once("UPDATE device SET \(parts.joined(separator: ", ")) WHERE id = $1 AND $2::text[] IS NOT NULL"),
            device,
            names.sorted())
    }

    /// Inserts the devices and returns their ids, in order. Every id that it takes from the sequence belongs to a
    /// device that is written.
    func insert(_ records: [DeviceRecord], _ topics: [String: Int64]) throws -> [Int64] {
        guard !records.isEmpty else { return [] }
        // Look up the sequence once, not for every id.
        let ids = try db.all(
            """
            SELECT nextval(sequence)
            FROM (SELECT pg_get_serial_sequence('device', 'id')::regclass AS sequence OFFSET 0) AS looked_up,
                generate_series(1, $1)
            """, records.count
        ) { try $0.int64(0) }.sorted()
        var texts = DeviceProfileTexts()
        try db.copyIn(
            """
            COPY device (
                id, topic_id, environment, token, installation_id, user_id, alerts_allowed, registered_at, last_seen_at,
                locale, time_zone, country, app_version, app_version_key, os_version, os_version_key, model, attributes,
                badge
            ) FROM STDIN (FORMAT binary)
            """
        ) { rows in
            for (id, record) in zip(ids, records) {
                try rows.row(
                    id, topics[record.topic] ?? 0, record.environment.code, record.token.bytes, record.installationID,
                    record.userID, record.alertsAllowed, record.registeredAt, record.lastSeenAt, record.locale,
                    record.timeZone, record.country, record.appVersion, texts.versionKey(record.appVersion),
                    record.osVersion, texts.versionKey(record.osVersion), record.model, record.attributeText,
                    Int64(record.badge ?? 0))
            }
        }
        return ids
    }

    func removeTags(of ids: [Int64]) throws {
        guard !ids.isEmpty else { return }
        try db.execute("DELETE FROM tag WHERE device_id = ANY ($1)", ids)
    }

    func addTags(_ tags: [(id: Int64, names: [String])]) throws {
        let pairs = tags.flatMap { device in device.names.map { (device.id, $0) } }
        guard !pairs.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO tag (device_id, name) SELECT * FROM unnest($1::bigint[], $2::text[]) ON CONFLICT DO NOTHING
            """, pairs.map(\.0), pairs.map(\.1))
    }

    func hear(of ids: [Int64], now: Timestamp) throws {
        guard !ids.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO token_heard (device_id, heard_at) SELECT unnest($1::bigint[]), $2
            ON CONFLICT (device_id) DO UPDATE SET heard_at = excluded.heard_at
                WHERE token_heard.heard_at < excluded.heard_at
            """, ids, now)
    }
}

extension DeviceRecord {
    fileprivate var attributeText: JSONText? { attributes.map { JSONText(StoredJSON.object($0)) } }
}
