package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    /// A batch of an import may be large, and waits for another one of the same topic.
    private static let importing = PostgresTransaction.quick.within(.seconds(600))
    private static let matchingDevicesMax = 20

    package func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts {
        let records = Self.stored(records)
        @Sendable func register(_ db: PostgresSession) throws -> ImportCounts {
            var registration = try DeviceRegistration(db, records, now: now, isDry: dryRun)
            var counts = ImportCounts()
            for record in records { counts.add(try registration.register(record).effect) }
            try registration.flush()
            return counts
        }
        return try await dryRun ? read(register) : write(Self.importing, register)
    }

    package func deviceImport() async throws -> any DeviceImport { BatchImport(store: self) }

    package func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice] {
        let records = Self.stored(records)
        return try await write(Self.importing) { db in
            var registration = try DeviceRegistration(db, records, now: now)
            var registered: [(place: Int, answer: RegisteredDevice)] = []
            registered.reserveCapacity(records.count)
            for record in records {
                let (effect, place) = try registration.register(record)
                // As it is now: a later record may change it, or merge it into another one.
                let device = reading ? registration.known[place] : nil
                registered.append((place, RegisteredDevice(effect: effect, device: device)))
            }
            try registration.flush()
            // A new one has its id since it was written.
            return registered.map { place, answer in
                var answer = answer
                answer.device?.id = registration.known[place].id
                return answer
            }
        }
    }

    private static func stored(_ records: [DeviceRecord]) -> [DeviceRecord] {
        var texts = DeviceTexts()
        return records.map { texts.stored($0) }
    }

    package func exportDevices(
        topic: String?, matching expression: AudienceExpression, now: Timestamp,
        batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            var condition = try AudienceCompiler(db, now: now).condition(for: expression)
            var sql = condition.sql
            if let topic { sql += " AND topic.name = \(condition.add(topic))" }
            return try StoredDeviceRow.handOut(where: sql, values: condition.values, db, batch)
        }
    }

    package func devices(matching text: String) async throws -> [StoredDevice] {
        guard StorableText.isWhole(text) else { return [] }
        let hex = text.lowercased().drop { $0 == "…" }
        let isHex = hex.allSatisfy { $0.isASCII && $0.isHexDigit }
        return try await read { db in
            let exact = try db.all(
                """
                \(StoredDeviceRow.select(
                    where: """
                        device.id IN (
                            SELECT id FROM device WHERE installation_id = $1
                            UNION ALL SELECT id FROM device WHERE user_id = $1
                            UNION ALL SELECT id FROM device WHERE token = $2
                        )
                        """)) LIMIT \(Self.matchingDevicesMax)
                """, text, DeviceToken(hex: text)?.bytes, read: StoredDeviceRow.device)
            guard isHex, TokenEnd.isAsked(byCharacters: hex.count, exact: exact.count) else { return exact }
            let ending = try db.all(
                """
                \(StoredDeviceRow.select(where: "right(encode(device.token, 'hex'), $1) = $2"))
                LIMIT \(Self.matchingDevicesMax)
                """, Int32(clamping: hex.count), String(hex), read: StoredDeviceRow.device)
            return TokenEnd.joined(exact, ending)
        }
    }

    package func devices(
        withStatus status: DeviceStatus, batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            try StoredDeviceRow.handOut(where: "device.status = $1", values: [status.code], db, batch)
        }
    }

    package func device(thatHad token: DeviceToken) async throws -> StoredDevice? {
        try await read { db in
            try StoredDeviceRow.fetch(
                "device.id = (SELECT device_id FROM token_history WHERE token = $1 LIMIT 1)", token.bytes, db)
        }
    }

    package func device(_ id: Int64) async throws -> StoredDevice? {
        try await read(.short) { db in try StoredDeviceRow.find(id, db) }
    }

    package func topics() async throws -> Set<String> {
        try await read(.short) { db in Set(try db.all("SELECT name FROM topic") { try $0.text(0) }) }
    }

    package func deviceCounts() async throws -> [DeviceCount] {
        try await read { db in
            try db.all(
                """
                SELECT topic.name, environment, status, count(*)
                FROM device JOIN topic ON topic.id = device.topic_id
                GROUP BY topic.name, environment, status
                ORDER BY topic.name, environment, status
                """
            ) { row in
                DeviceCount(
                    topic: try row.text(0), environment: PushEnvironment(code: try row.int64(1)),
                    status: DeviceStatus(code: try row.int64(2)), count: try row.int(3))
            }
        }
    }
}

/// Each batch as it comes: there is nothing to be put off that would cost less later, since indexes may be neither
/// dropped nor made while others register and send.
private struct BatchImport: DeviceImport {
    let store: PostgresDatabase

    func register(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts {
        try await store.importDevices(records, now: now)
    }

    var isPuttingOff: Bool { false }

    func finish(now: Timestamp) async throws -> ImportCounts { ImportCounts() }
}
