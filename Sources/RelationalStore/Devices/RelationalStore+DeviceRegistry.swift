package import Model
package import Store

/// The methods of ``DeviceRegistry`` that only read.
extension RelationalStore {
    package func exportDevices(
        topic: String?, matching expression: AudienceExpression, now: Timestamp,
        batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await snapshot(.expensive) { db in
            var condition = try db.condition(for: expression, now: now)
            if let topic { condition.sql += " AND topic.name = \(condition.add(topic))" }
            return try StoredDevices(db).handOut(where: condition, batch)
        }
    }

    package func devices(
        withStatus status: DeviceStatus, batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await snapshot(.expensive) { db in
            try StoredDevices(db).handOut(where: AudienceCondition("device.status = $1", status.code), batch)
        }
    }

    package func devices(matching text: String, topics: Set<String>?) async throws -> [StoredDevice] {
        guard Session.dialect.canHold(text) else { return [] }
        let topics = topics.map { $0.filter(Session.dialect.canHold).sorted() }
        guard topics?.isEmpty != true else { return [] }
        let hex = text.lowercased().drop { $0 == "…" }
        let isHex = hex.allSatisfy { $0.isASCII && $0.isHexDigit }
        /// Adds the topics, so that the limit applies to their devices alone.
        @Sendable func within(_ condition: AudienceCondition) -> AudienceCondition {
            guard let topics else { return condition }
            var condition = condition
            let names = topics.map { condition.add($0) }.joined(separator: ", ")
            condition.sql += " AND topic.name IN (\(names))"
            return condition
        }
        return try await snapshot(.expensive) { db in
            let devices = StoredDevices(db)
            let exact = try devices.all(
                where: within(
                    AudienceCondition(
                        """
                        device.id IN (
                            SELECT id FROM device WHERE installation_id = $1
                            UNION ALL SELECT id FROM device WHERE user_id = $1
                            UNION ALL SELECT id FROM device WHERE token = $2
                        )
                        """, text, DeviceToken(hex: text)?.bytes ?? [])), limit: TokenEnd.devicesMax)
            guard isHex, TokenEnd.isAsked(byCharacters: hex.count, exact: exact.count) else { return exact }
            let ending = try devices.all(
                where: within(AudienceCondition("\(Session.dialect.hex("device.token")) LIKE $1", "%\(hex)")),
                limit: TokenEnd.devicesMax)
            return TokenEnd.joined(exact, ending)
        }
    }

    package func device(installation: String, topic: String) async throws -> StoredDevice? {
        guard Session.dialect.canHold(installation), Session.dialect.canHold(topic) else { return nil }
        return try await snapshot(.short) { db in
            try StoredDevices(db).all(
                where: "device.installation_id = $1 AND topic.name = $2", installation, topic, limit: 1
            ).first
        }
    }

    package func device(thatHad token: DeviceToken) async throws -> StoredDevice? {
        try await snapshot(.expensive) { db in
            try StoredDevices(db).first(
                where: "device.id = (SELECT device_id FROM token_history WHERE token = $1 LIMIT 1)", token.bytes)
        }
    }

    package func device(_ id: Int64) async throws -> StoredDevice? {
        try await snapshot(.short) { db in try StoredDevices(db).find(id) }
    }

    package func topics() async throws -> Set<String> {
        try await snapshot(.short) { db in Set(try db.all("SELECT name FROM topic") { try $0.text(0) }) }
    }

    package func deviceCounts() async throws -> [DeviceCount] {
        try await snapshot(.expensive) { db in
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

    package func audienceValues(topic: String) async throws -> AudienceValues {
        try await snapshot(.expensive) { db in
            func column(_ name: String, _ join: String = "") throws -> [AudienceValues.Value] {
                try db.all(
                    """
                    SELECT \(name), count(*)
                    FROM device JOIN topic ON topic.id = device.topic_id \(join)
                    WHERE topic.name = $1 AND status = $2 AND \(name) IS NOT NULL
                    GROUP BY \(name) ORDER BY count(*) DESC, \(name) LIMIT \(AudienceValues.valuesMax)
                    """, topic, DeviceStatus.active.code
                ) { row in AudienceValues.Value(try row.text(0), devices: try row.int(1)) }
            }
            return AudienceValues(
                locales: try column("locale"), countries: try column("country"), appVersions: try column("app_version"),
                tags: try column("tag.name", "JOIN tag ON tag.device_id = device.id"))
        }
    }
}
