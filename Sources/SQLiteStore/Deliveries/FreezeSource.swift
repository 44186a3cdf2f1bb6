import GRDB
import Store
import Model

/// The devices a run is for, in order of id, read from one snapshot.
struct FreezeSource {
    struct Entry {
        var device: Int64
        var environment: Int64
        var generation: Int64
        var suppression: SuppressionReason?
        var variant: Int?
        /// When its wave starts; nil in a run without waves.
        var wave: Timestamp?
    }

    private let rows: RowStatement
    private let pushType: PushType
    private let split: CampaignSplit
    private var waves: ZoneWaveCache?
    private var batchRows = StoreLimits.freezeFirstBatchRows
    private(set) var isAtEnd = false

    init(_ db: Database, _ run: Run, _ selection: AudienceSelection) throws {
        var arguments = selection.arguments
        arguments["after"] =
            try Int64.fetchOne(
                db, sql: "SELECT coalesce(max(device_id), 0) FROM delivery WHERE run_id = :run",
                arguments: ["run": run.id])?
            .databaseValue ?? .null
        rows = try RowStatement(
            db,
            """
            SELECT device.id, device.environment, device.token_generation, device.status, device.alerts_allowed,
                \(run.definition.wall == nil ? "NULL" : "device.time_zone")
            FROM device
            WHERE device.id > :after AND \(selection.sql)
            ORDER BY device.id
            """, arguments: StatementArguments(arguments))
        pushType = run.definition.campaign.pushType
        split = CampaignSplit(run.definition.campaign)
        waves = RecipientWaves(run.definition, startedAt: run.startedAt ?? run.createdAt).map(ZoneWaveCache.init)
    }

    mutating func nextBatch() throws -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(batchRows)
        while entries.count < batchRows {
            guard try rows.step() else {
                isAtEnd = true
                break
            }
            entries.append(entry(rows.int64(0)))
        }
        batchRows = StoreLimits.freezeBatchRows
        return entries
    }

    /// Who would not be sent to anyway is in no holdout: the holdout is to be compared with those sent to.
    private mutating func entry(_ device: Int64) -> Entry {
        var reason = AudienceSelection.suppression(
            status: DeviceStatus(code: rows.int64(3)), alertsAllowed: rows.isNull(4) || rows.int64(4) != 0,
            pushType: pushType)
        let isHeldOut = reason == nil && split.isHeldOut(device)
        var wave: Timestamp?
        switch reason == nil && !isHeldOut ? waves?.turn(inZone: rows.text(5)) : nil {
        case nil: break
        case .at(let moment): wave = moment
        case .never(let why): reason = why
        }
        return Entry(
            device: device, environment: rows.int64(1), generation: rows.int64(2),
            suppression: isHeldOut ? .holdout : reason, variant: isHeldOut ? nil : split.variant(of: device),
            wave: wave)
    }

    func close() { rows.reset() }
}

extension FreezeSource {
    /// One device chosen by hand: no holdout.
    static func entry(
        ofDevice device: Int64, _ campaign: Campaign, variant: Int?, _ db: Database
    ) throws -> Entry {
        let row = try Row.fetchOne(
            db,
            sql: """
                SELECT topic.name, environment, token_generation, status, alerts_allowed
                FROM device JOIN topic ON topic.id = device.topic_id WHERE device.id = :device
                """, arguments: ["device": device])
        guard let row else { throw StoreError.noSuchDevice(device) }
        let topic: String = row[0]
        guard topic == campaign.deviceTopic else {
            throw StoreError.deviceOfOtherTopic(device, topic: topic, expected: campaign.deviceTopic)
        }
        let reason = AudienceSelection.suppression(
            status: DeviceStatus(code: row[3]), alertsAllowed: row[4] as Int64? != 0, pushType: campaign.pushType)
        return Entry(
            device: device, environment: row[1], generation: row[2], suppression: reason,
            variant: variant ?? CampaignSplit(campaign).variant(of: device))
    }
}
