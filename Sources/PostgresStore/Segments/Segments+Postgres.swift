package import Model
package import Store

extension PostgresDatabase {
    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport {
        try await read(.short) { db in
            let catalog = SegmentCatalog(db)
            if try mode == .remove || catalog.find(name) != nil { _ = try catalog.requireStatic(name) }
        }
        return MemberImport(store: self, name: name, mode: mode, topic: topic)
    }
}

extension PostgresSession {
    package func count(
        _ audience: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)?,
        now: Timestamp
    ) throws -> Int {
        let condition = try AudienceCompiler(self, now: now).condition(for: audience, defining: defined)
        return try rows(.once("SELECT count(*) FROM device WHERE \(condition.sql)"), values: condition.values)
            .first.map { try $0.int(0) } ?? 0
    }

    package func requireUsable(_ audience: AudienceExpression, now: Timestamp) throws {
        _ = try AudienceCompiler(self, now: now).condition(for: audience)
    }

    package func devices(
        of audience: AudienceExpression, within range: ClosedRange<Int64>?, limit: Int, now: Timestamp
    ) throws -> [StoredDevice] {
        var condition = try AudienceCompiler(self, now: now).condition(for: audience)
        if let range {
            condition.sql =
                "device.id >= \(condition.add(range.lowerBound)) AND device.id <= \(condition.add(range.upperBound)) "
                + "AND \(condition.sql)"
        }
        return try rows(
            .once("\(StoredDeviceRow.select(where: condition.sql)) LIMIT \(limit)"), values: condition.values
        ).map(StoredDeviceRow.device)
    }

    package func members(of segment: Int64, after device: Int64, limit: Int) throws -> [StoredDevice] {
        let select = StoredDeviceRow.select(
            where: """
                device.id IN (
                    SELECT device_id FROM segment_member WHERE segment_id = $1 AND device_id > $2
                    ORDER BY device_id LIMIT $3
                )
                """)
        return try all("\(select)", segment, device, limit, read: StoredDeviceRow.device)
    }
}
