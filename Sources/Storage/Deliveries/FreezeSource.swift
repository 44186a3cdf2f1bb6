import GRDB
import Model

/// The devices a run is for, in order of id, read from one snapshot.
struct FreezeSource {
    struct Entry {
        var device: Int64
        var environment: Int64
        var generation: Int64
        var suppression: SuppressionReason?
    }

    private let rows: RowStatement
    private let pushType: PushType
    private var batchRows = StoreLimits.freezeFirstBatchRows
    private(set) var isAtEnd = false

    init(_ db: Database, _ run: Run, now: Timestamp) throws {
        let campaign = run.definition.campaign
        var condition = try AudienceCompiler(db, now: now).condition(for: campaign.audience.expression)
        condition.arguments["topic"] =
            try Int64.fetchOne(db, sql: "SELECT id FROM topic WHERE name = :name", arguments: ["name": campaign.topic])?
            .databaseValue ?? .null
        condition.arguments["after"] =
            try Int64.fetchOne(
                db, sql: "SELECT coalesce(max(device_id), 0) FROM delivery WHERE run_id = :run",
                arguments: ["run": run.id])?
            .databaseValue ?? .null
        rows = try RowStatement(
            db,
            """
            SELECT device.id, device.environment, device.token_generation, device.status, device.alerts_allowed
            FROM device
            WHERE device.topic_id = :topic AND device.id > :after AND \(condition.sql)
            ORDER BY device.id
            """, arguments: StatementArguments(condition.arguments))
        pushType = campaign.pushType
    }

    mutating func nextBatch() throws -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(batchRows)
        while entries.count < batchRows {
            guard try rows.step() else {
                isAtEnd = true
                break
            }
            let suppression = AudienceSelection.suppression(
                status: DeviceStatus(code: rows.int64(3)), alertsAllowed: rows.isNull(4) || rows.int64(4) != 0,
                pushType: pushType)
            entries.append(
                Entry(
                    device: rows.int64(0), environment: rows.int64(1), generation: rows.int64(2),
                    suppression: suppression))
        }
        batchRows = StoreLimits.freezeBatchRows
        return entries
    }

    func close() { rows.reset() }
}
