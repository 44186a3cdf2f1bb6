import Model
import Parquet
import Store

/// The values of a batch of rows, one array for each column of an ``ExportTable``, in its order.
struct ExportRows: Sendable {
    let columns: [ParquetValues]

    private init(_ columns: [ParquetValues]) { self.columns = columns }

    private static func numbers<Row>(_ rows: [Row], _ value: (Row) -> Int?) -> ParquetValues {
        .int64s(rows.map { row in value(row).map { Int64($0) } })
    }

    private static func longs<Row>(_ rows: [Row], _ value: (Row) -> Int64?) -> ParquetValues {
        .int64s(rows.map(value))
    }

    private static func texts<Row>(_ rows: [Row], _ value: (Row) -> String?) -> ParquetValues {
        .strings(rows.map(value))
    }

    private static func times<Row>(_ rows: [Row], _ value: (Row) -> Timestamp?) -> ParquetValues {
        .int64s(rows.map { value($0)?.milliseconds })
    }

    private static func doubles<Row>(_ rows: [Row], _ value: (Row) -> Double?) -> ParquetValues {
        .doubles(rows.map(value))
    }

    private static func booleans<Row>(_ rows: [Row], _ value: (Row) -> Bool?) -> ParquetValues {
        .booleans(rows.map(value))
    }

    static func runs(_ runs: [Run]) -> ExportRows {
        ExportRows([
            longs(runs, \.id), texts(runs, \.campaign), texts(runs, \.occurrence),
            texts(runs) { $0.definition.campaign.deviceTopic },
            texts(runs) { $0.definition.campaign.pushType.rawValue },
            texts(runs) { $0.state.rawValue }, times(runs, \.createdAt), times(runs, \.startedAt),
            times(runs, \.finishedAt), numbers(runs, \.counts.audience), numbers(runs, \.counts.accepted),
            numbers(runs, \.counts.rejected), numbers(runs, \.counts.unknown), numbers(runs, \.counts.suppressed),
            numbers(runs) { $0.counts.pending + $0.counts.leased },
            doubles(runs) { $0.definition.campaign.holdoutPercent },
            booleans(runs) { $0.definition.correction != nil },
        ])
    }

    static func deliveries(_ rows: [OutcomeRow], of run: Run) -> ExportRows {
        let campaign = run.definition.campaign
        let split = CampaignSplit(campaign)
        return ExportRows([
            longs(rows) { _ in run.id }, texts(rows) { _ in run.campaign }, longs(rows, \.device),
            texts(rows, \.installationID), texts(rows) { $0.environment.rawValue }, texts(rows, \.locale),
            texts(rows) { row in
                let locales = run.definition.template(ofVariant: row.variant).locales
                return row.localeIndex.flatMap { locales.indices.contains($0) ? locales[$0].description : nil }
            }, texts(rows, \.appVersion),
            texts(rows) { row in
                row.variant.flatMap { campaign.variants.indices.contains($0) ? campaign.variants[$0].name : nil }
            }, texts(rows) { $0.state.name }, numbers(rows) { $0.status > 0 ? $0.status : nil },
            texts(rows, \.reason), numbers(rows, \.attempts), numbers(rows, \.doubts), times(rows, \.settledAt),
            // A campaign that splits by user holds out whole users, whom the delivery does not name.
            booleans(rows) { row in
                campaign.dedupe == .user
                    ? row.reason == SuppressionReason.holdout.rawValue : split.isHeldOut(row.device)
            },
        ])
    }

    static func events(_ rows: [StoredFeedback]) -> ExportRows {
        ExportRows([
            longs(rows, \.device), longs(rows, \.run), texts(rows) { $0.kind.name },
            texts(rows) { $0.name.isEmpty ? nil : $0.name }, longs(rows, \.valueMicros), times(rows, \.at),
            times(rows, \.receivedAt),
        ])
    }

    static func devices(_ rows: [StoredDevice], withTokens: Bool) -> ExportRows {
        ExportRows([
            longs(rows, \.id), texts(rows, \.record.installationID), texts(rows, \.record.userID),
            texts(rows, \.record.topic), texts(rows) { $0.record.environment.rawValue },
            texts(rows) { $0.status.rawValue }, texts(rows, \.statusReason), times(rows, \.statusAt),
            texts(rows, \.record.locale), texts(rows, \.record.timeZone), texts(rows, \.record.country),
            texts(rows, \.record.appVersion), texts(rows, \.record.osVersion), texts(rows, \.record.model),
            booleans(rows, \.record.alertsAllowed), times(rows, \.record.registeredAt),
            times(rows, \.record.lastSeenAt),
            texts(rows) { row in
                let tags = row.record.tags ?? []
                return tags.isEmpty ? nil : tags.sorted().joined(separator: ";")
            }, texts(rows) { withTokens ? $0.record.token.hex : nil },
        ])
    }

    static func timeline(_ timeline: TimelineResult, of run: Run) -> ExportRows {
        let slots = timeline.slots
        return ExportRows([
            longs(slots) { _ in run.id }, texts(slots) { _ in run.campaign },
            times(slots) { WrittenMoment.parse($0.startsAt) }, numbers(slots) { _ in timeline.slotSeconds },
            numbers(slots, \.accepted), numbers(slots, \.rejected), numbers(slots, \.unknown),
            numbers(slots, \.suppressed), numbers(slots, \.retried), doubles(slots, \.p50Ms), doubles(slots, \.p99Ms),
            numbers(slots, \.reopened),
        ])
    }
}
