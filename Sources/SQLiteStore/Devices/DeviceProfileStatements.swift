import GRDB
import Model
import Store

/// Writes the fields of a record: one statement for a new device, one for a known device.
struct DeviceProfileStatements {
    private struct Parameters {
        let id, topic, environment, token, installation, user, alertsAllowed, registeredAt, lastSeenAt: Int32
        let locale, timeZone, country, appVersion, appVersionKey, osVersion, osVersionKey, model, attributes,
            badge: Int32

        init(_ statement: RowStatement) {
            id = statement.parameter(":id")
            topic = statement.parameter(":topic")
            environment = statement.parameter(":environment")
            token = statement.parameter(":token")
            installation = statement.parameter(":installation_id")
            user = statement.parameter(":user_id")
            alertsAllowed = statement.parameter(":alerts_allowed")
            registeredAt = statement.parameter(":registered_at")
            lastSeenAt = statement.parameter(":last_seen_at")
            locale = statement.parameter(":locale")
            timeZone = statement.parameter(":time_zone")
            country = statement.parameter(":country")
            appVersion = statement.parameter(":app_version")
            appVersionKey = statement.parameter(":app_version_key")
            osVersion = statement.parameter(":os_version")
            osVersionKey = statement.parameter(":os_version_key")
            model = statement.parameter(":model")
            attributes = statement.parameter(":attributes")
            badge = statement.parameter(":badge")
        }
    }

    private let db: Database
    private let insertion: RowStatement
    private let insertionParameters: Parameters
    private let update: RowStatement
    private let updateParameters: Parameters
    private let reading: RowStatement
    private var texts = DeviceProfileTexts()

    init(_ db: Database) throws {
        self.db = db
        insertion = try RowStatement(db, Self.insertSQL)
        insertionParameters = Parameters(insertion)
        update = try RowStatement(db, Self.updateSQL)
        updateParameters = Parameters(update)
        reading = try RowStatement(db, "SELECT attributes FROM device WHERE id = :device")
    }

    /// Returns the id of the new device.
    mutating func insert(_ record: DeviceRecord, topic: Int64) throws -> Int64 {
        try insertion.bind(topic, insertionParameters.topic)
        try insertion.bind(record.environment.code, insertionParameters.environment)
        try insertion.bind(record.token.bytes, insertionParameters.token)
        try bind(record, to: insertion, insertionParameters)
        try insertion.run()
        return db.lastInsertedRowID
    }

    /// Returns `false` if the stored device already has all these values.
    mutating func update(_ device: Int64, with record: DeviceRecord) throws -> Bool {
        let isErased = try erase(record.erased, of: device)
        var record = record
        record.attributes = try attributes(of: record, beside: device)
        try update.bind(device, updateParameters.id)
        try bind(record, to: update, updateParameters)
        try update.run()
        return update.changes > 0 || isErased
    }

    /// Returns all attributes that the device has after the update. Returns `nil` if the record does not change them.
    private func attributes(of record: DeviceRecord, beside device: Int64) throws -> [String: String]? {
        let erasesSome = record.erased.contains { if case .attribute = $0 { true } else { $0 == .attributes } }
        guard record.attributes != nil || erasesSome else { return nil }
        try reading.bind(device, reading.parameter(":device"))
        defer { reading.reset() }
        guard try reading.step(), let text = reading.text(0) else {
            return record.attributes?.isEmpty == true ? nil : record.attributes
        }
        if let given = record.attributes, !erasesSome, StoredJSON.object(given) == text { return given }
        var stored = DeviceRecord(token: record.token, environment: record.environment, topic: record.topic)
        stored.attributes = try StoredJSON.value(text)
        var given = stored
        given.attributes = record.attributes
        given.replacesAttributes = record.replacesAttributes
        given.erased = record.erased
        _ = stored.update(with: given)
        return stored.attributes
    }

    /// Erases the fields, except attributes. Returns `true` if one of them had a value.
    private func erase(_ fields: Set<DeviceRecord.Erasure>, of device: Int64) throws -> Bool {
        let columns = fields.flatMap(\.columns).sorted()
        guard !columns.isEmpty else { return false }
        try db.execute(
            sql: """
                UPDATE device SET \(columns.map { "\($0) = NULL" }.joined(separator: ", "))
                WHERE id = :device AND (\(columns.map { "\($0) IS NOT NULL" }.joined(separator: " OR ")))
                """, arguments: ["device": device])
        return db.changesCount > 0
    }

    private mutating func bind(_ record: DeviceRecord, to statement: RowStatement, _ parameters: Parameters) throws {
        try statement.bind(record.installationID, parameters.installation)
        try statement.bind(record.userID, parameters.user)
        try statement.bind(record.alertsAllowed.map { $0 ? Int64(1) : 0 }, parameters.alertsAllowed)
        try statement.bind(record.registeredAt?.milliseconds, parameters.registeredAt)
        try statement.bind(record.lastSeenAt?.milliseconds, parameters.lastSeenAt)
        try statement.bind(texts.locale(record.locale), parameters.locale)
        try statement.bind(record.timeZone, parameters.timeZone)
        try statement.bind(record.country, parameters.country)
        try statement.bind(record.appVersion, parameters.appVersion)
        try statement.bind(texts.versionKey(record.appVersion), parameters.appVersionKey)
        try statement.bind(record.osVersion, parameters.osVersion)
        try statement.bind(texts.versionKey(record.osVersion), parameters.osVersionKey)
        try statement.bind(record.model, parameters.model)
        try statement.bind(record.attributes.map(StoredJSON.object), parameters.attributes)
        try statement.bind(record.badge.map(Int64.init), parameters.badge)
    }

    private static let insertSQL = """
        INSERT INTO device (
            topic_id, environment, token, installation_id, user_id, alerts_allowed, registered_at, last_seen_at, locale,
            time_zone, country, app_version, app_version_key, os_version, os_version_key, model, attributes, badge
        ) VALUES (
            :topic, :environment, :token, :installation_id, :user_id, :alerts_allowed, :registered_at, :last_seen_at,
            :locale, :time_zone, :country, :app_version, :app_version_key, :os_version, :os_version_key, :model,
            :attributes, coalesce(:badge, 0)
        )
        """

    /// The final comparison skips a row that would not change, so that importing the same file again writes no page.
    private static let updateSQL = """
        UPDATE device SET
            installation_id = coalesce(:installation_id, installation_id),
            user_id = coalesce(:user_id, user_id),
            alerts_allowed = coalesce(:alerts_allowed, alerts_allowed),
            registered_at = coalesce(max(registered_at, :registered_at), registered_at, :registered_at),
            last_seen_at = coalesce(max(last_seen_at, :last_seen_at), last_seen_at, :last_seen_at),
            locale = coalesce(:locale, locale),
            time_zone = coalesce(:time_zone, time_zone),
            country = coalesce(:country, country),
            app_version = coalesce(:app_version, app_version),
            app_version_key = iif(:app_version IS NULL, app_version_key, :app_version_key),
            os_version = coalesce(:os_version, os_version),
            os_version_key = iif(:os_version IS NULL, os_version_key, :os_version_key),
            model = coalesce(:model, model),
            attributes = coalesce(:attributes, attributes),
            badge = coalesce(:badge, badge),
            status = iif(:registered_at > status_at, \(DeviceStatus.active.code), status),
            status_reason = iif(:registered_at > status_at, NULL, status_reason),
            status_at = iif(:registered_at > status_at, NULL, status_at)
        WHERE id = :id AND (
            coalesce(:registered_at > status_at, FALSE)
            OR coalesce(:registered_at > coalesce(registered_at, :registered_at - 1), FALSE)
            OR coalesce(:last_seen_at > coalesce(last_seen_at, :last_seen_at - 1), FALSE)
            OR (
                installation_id, user_id, alerts_allowed, locale, time_zone, country, app_version, os_version, model,
                attributes, badge
            ) IS NOT (
                coalesce(:installation_id, installation_id), coalesce(:user_id, user_id),
                coalesce(:alerts_allowed, alerts_allowed), coalesce(:locale, locale), coalesce(:time_zone, time_zone),
                coalesce(:country, country), coalesce(:app_version, app_version), coalesce(:os_version, os_version),
                coalesce(:model, model), coalesce(:attributes, attributes), coalesce(:badge, badge)
            )
        )
        """
}
