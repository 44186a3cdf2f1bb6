import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport {
        let id = try await write { db in
            let catalog = SegmentCatalog(db)
            if try mode == .remove || catalog.find(name) != nil { _ = try catalog.requireStatic(name) }
            return try SegmentStage.begin(db)
        }
        return MemberImport(store: self, id: id, name: name, mode: mode, topic: topic)
    }
}

extension Database {
    package func count(
        _ audience: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)?,
        now: Timestamp
    ) throws -> Int {
        let condition = try AudienceCompiler(self, now: now).condition(for: audience, defining: defined)
        return try Int.fetchOne(
            self, sql: "SELECT count(*) FROM device WHERE \(condition.sql)",
            arguments: StatementArguments(condition.arguments)) ?? 0
    }

    package func requireUsable(_ audience: AudienceExpression, now: Timestamp) throws {
        _ = try AudienceCompiler(self, now: now).condition(for: audience)
    }

    package func devices(
        of audience: AudienceExpression, within range: ClosedRange<Int64>?, limit: Int, now: Timestamp
    ) throws -> [StoredDevice] {
        let condition = try AudienceCompiler(self, now: now).condition(for: audience)
        var (bounds, arguments) = ("", StatementArguments(condition.arguments))
        if let range {
            bounds = "device.id >= :first AND device.id <= :last AND "
            arguments += ["first": range.lowerBound, "last": range.upperBound]
        }
        return try Row.fetchAll(
            self, sql: StoredDeviceRow.select(where: "\(bounds)\(condition.sql)") + " LIMIT \(limit)",
            arguments: arguments
        ).map(StoredDeviceRow.device)
    }

    package func members(of segment: Int64, after device: Int64, limit: Int) throws -> [StoredDevice] {
        try Row.fetchAll(
            self,
            sql: StoredDeviceRow.select(
                where: """
                    device.id IN (
                        SELECT device_id FROM segment_member WHERE segment_id = :segment AND device_id > :after
                        ORDER BY device_id LIMIT :limit
                    )
                    """), arguments: ["segment": segment, "after": device, "limit": limit]
        ).map(StoredDeviceRow.device)
    }
}
