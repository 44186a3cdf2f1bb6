/// A view of the store for analysts. Every store has the same views with the same columns.
package enum StoreView: String, CaseIterable, Hashable, Sendable {
    case run = "run_view"
    case delivery = "delivery_view"
    case event = "event_view"
    case device = "device_view"
    case timeline = "timeline_view"
    case tag = "tag_view"
    case segment = "segment_view"

    /// What a row is.
    package var about: String {
        switch self {
        case .run: "A run. Runs of tests are included."
        case .delivery: "A run's push to one device. Runs of tests are left out."
        case .event: "An app's report about a push or a person."
        case .device: "A device as it is now."
        case .timeline: "An interval of 10 seconds of a run, with the responses of APNs in that interval."
        case .tag: "A tag of a device."
        case .segment: "A device of an imported segment."
        }
    }

    /// The table of the export with the same rows, or `nil` if the export has none.
    package var table: ExportTable? {
        switch self {
        case .run: .runs
        case .delivery: .deliveries
        case .event: .events
        case .device: .devices
        case .timeline: .timeline
        case .tag, .segment: nil
        }
    }

    /// The columns, in the order of the database.
    package var columns: [StoreViewColumn] {
        switch self {
        case .run: Self.runColumns
        case .delivery: Self.deliveryColumns
        case .event: Self.eventColumns
        case .device: Self.deviceColumns
        case .timeline: Self.timelineColumns
        case .tag: [.deviceID, .own(ExportColumn("tag", .text, "The tag."))]
        case .segment: [.own(ExportColumn("segment", .word, "The name of the segment.")), .deviceID]
        }
    }
}

/// A column of a view.
package enum StoreViewColumn: Hashable, Sendable {
    /// A column that the export has, too, under the name `exported`.
    case same(_ name: String, as: String)
    /// A column of the view alone.
    case own(ExportColumn)

    static func same(_ name: String) -> StoreViewColumn { .same(name, as: name) }

    fileprivate static let deviceID = StoreViewColumn.own(
        ExportColumn("device_id", .integer, "The number of the device."))

    package var name: String {
        switch self {
        case .same(let name, _): name
        case .own(let column): column.name
        }
    }
}

extension StoreView {
    fileprivate static let runColumns: [StoreViewColumn] = [
        .same("id", as: "run"), .same("campaign"), .same("occurrence"), .same("state"),
        .own(ExportColumn("is_test", .boolean, "Whether the run was a test, sent to one device.")), .same("created_at"),
        .same("started_at"), .same("finished_at"),
        .own(ExportColumn("holdout_seed", .integer, "The seed of the split into holdout and others.")),
        .own(ExportColumn("variant_seed", .integer, "The seed of the split into variants.")),
    ]

    fileprivate static let deliveryColumns: [StoreViewColumn] = [
        .same("run_id", as: "run"), .same("campaign"),
        .own(ExportColumn("occurrence", .text, "The name of the run within its campaign.")),
        .same("device_id", as: "device"), .same("environment"), .same("state"),
        .own(ExportColumn("status", .integer, "APNs’ HTTP status. 0 without a response.")), .same("reason"),
        .same("attempts"), .same("variant"),
        .own(
            ExportColumn(
                "changed_at", .time,
                "When the state last changed. Unless the state is `pending`, this is `settled_at` of the export.")),
        .same("text_locale"), .same("locale"), .same("app_version"),
        .own(
            ExportColumn("time_zone", .word, "The device’s time zone when the run began.", orNothing: true)),
        .own(ExportColumn("country", .word, "The device’s country when the run began.", orNothing: true)),
        .own(
            ExportColumn(
                "wave_at", .time, "When the device’s wave starts, with `zone: recipient` only.", orNothing: true)),
        .own(ExportColumn("stage", .integer, "The number of the stage, from 1.", orNothing: true)), .same("doubts"),
    ]

    fileprivate static let deviceColumns: [StoreViewColumn] = [
        .same("id", as: "device"), .same("topic"), .same("environment"), .same("status"), .same("status_reason"),
        .same("installation_id"), .same("user_id"), .same("locale"), .same("time_zone"), .same("country"),
        .same("app_version"),
        .own(ExportColumn("app_version_key", .text, "A sortable form of the app version.", orNothing: true)),
        .same("os_version"),
        .own(ExportColumn("os_version_key", .text, "A sortable form of the system version.", orNothing: true)),
        .same("model"), .same("alerts_allowed"),
        .own(ExportColumn("badge", .integer, "The number on the app’s icon, as Fanfare last set it.", orNothing: true)),
        .same("registered_at"), .same("last_seen_at"),
        .own(ExportColumn("attributes", .text, "Your own attributes, as a JSON object.", orNothing: true)),
    ]

    fileprivate static let eventColumns: [StoreViewColumn] =
        [.same("device_id", as: "device"), .same("run_id", as: "run")]
        + ["type", "name", "value", "happened_at", "received_at"].map { .same($0) }

    fileprivate static let timelineColumns: [StoreViewColumn] =
        [.same("run_id", as: "run")]
        + ["campaign", "starts_at", "seconds", "accepted", "rejected", "unknown", "suppressed", "retried"]
        .map { .same($0) }
}
