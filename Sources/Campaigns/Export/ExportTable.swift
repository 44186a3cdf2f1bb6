import Parquet

/// A table of the export for analysts. Its columns are never renamed or given another meaning, and new ones come last.
package enum ExportTable: String, CaseIterable, Hashable, Sendable {
    case runs, deliveries, events, devices, timeline

    /// What a row is.
    package var about: String {
        switch self {
        case .runs: "A run: one start of a campaign. Runs of tests are left out."
        case .deliveries: "A run's push to one device."
        case .events: "An app's report about a push or a person."
        case .devices: "A device as it is now. All devices are in one file."
        case .timeline: "An interval of a run, with the responses of APNs in that interval."
        }
    }

    /// The columns, in order.
    package var columns: [ExportColumn] {
        switch self {
        case .runs: Self.runColumns
        case .deliveries: Self.deliveryColumns
        case .events: Self.eventColumns
        case .devices: Self.deviceColumns
        case .timeline: Self.timelineColumns
        }
    }
}

/// A column of the export.
package struct ExportColumn: Hashable, Sendable {
    /// The kinds of values, for people and for Parquet.
    package enum Kind: String, Hashable, Sendable {
        case integer, number, boolean, text
        /// A text from a short list.
        case word
        /// Milliseconds in UTC.
        case time
        /// A number with six digits after the point.
        case decimal
    }

    package let name: String
    package let kind: Kind
    package let isNullable: Bool
    /// The unit of a number, such as `ms`. `nil` for counts and for all other values.
    package let unit: String?
    package let about: String

    init(_ name: String, _ kind: Kind, _ about: String, unit: String? = nil, orNothing isNullable: Bool = false) {
        self.name = name
        self.kind = kind
        self.isNullable = isNullable
        self.unit = unit
        self.about = about
    }

    var parquet: ParquetColumn {
        let kind: ParquetColumn.Kind =
            switch kind {
            case .integer: .int64
            case .number: .double
            case .boolean: .boolean
            case .text: .string
            case .word: .enumeration
            case .time: .timestamp
            case .decimal: .decimal
            }
        return ParquetColumn(name, kind, isNullable: isNullable)
    }
}

extension ExportTable {
    private static let runID = ExportColumn("run", .integer, "The number of the run.")
    private static let campaign = ExportColumn("campaign", .word, "The campaign’s name.")
    private static let device = ExportColumn(
        "device", .integer, "The number of the device. It stays when the token changes.")
    private static let environment = ExportColumn("environment", .word, "`production` or `sandbox`.")

    fileprivate static let runColumns = [
        runID, campaign,
        ExportColumn(
            "occurrence", .text, "The name of the run within its campaign, such as the planned time or an episode."),
        ExportColumn("topic", .word, "The topic: the app’s bundle id, with the suffix of the push type."),
        ExportColumn("push_type", .word, "The push type of APNs."),
        ExportColumn("state", .word, "`finished`, `cancelled`, `failed`, or the state of a run that has not ended."),
        ExportColumn("created_at", .time, "When the run was created."),
        ExportColumn("started_at", .time, "When sending began.", orNothing: true),
        ExportColumn("finished_at", .time, "When the run ended.", orNothing: true),
        ExportColumn("audience", .integer, "The devices of the audience when the run began."),
        ExportColumn("accepted", .integer, "Pushes that APNs accepted."),
        ExportColumn("rejected", .integer, "Pushes that APNs rejected for good."),
        ExportColumn("unknown", .integer, "Pushes without a response. They may have arrived."),
        ExportColumn("suppressed", .integer, "Pushes that were not sent."),
        ExportColumn("pending", .integer, "Pushes without an outcome yet: in flight or waiting."),
        ExportColumn(
            "holdout_percent", .number, "The share of the audience that is held out.", unit: "%", orNothing: true),
        ExportColumn("is_correction", .boolean, "Whether the run corrects another one."),
    ]

    fileprivate static let deliveryColumns = [
        runID, campaign, device,
        ExportColumn(
            "installation_id", .text, "The installation’s id, which the app chose. Absent if the device was removed.",
            orNothing: true),
        environment,
        ExportColumn("locale", .word, "The device’s language when the run began.", orNothing: true),
        ExportColumn("text_locale", .word, "The language of the text that was sent.", orNothing: true),
        ExportColumn("app_version", .word, "The app’s version when the run began.", orNothing: true),
        ExportColumn("variant", .word, "The variant, in a campaign with variants.", orNothing: true),
        ExportColumn("state", .word, "`accepted`, `rejected`, `unknown`, `suppressed` or `pending`."),
        ExportColumn("status", .integer, "APNs’ HTTP status. Absent without a response.", orNothing: true),
        ExportColumn("reason", .word, "The reason for the outcome, from APNs or Fanfare.", orNothing: true),
        ExportColumn("attempts", .integer, "How many times the push was sent to APNs."),
        ExportColumn("doubts", .integer, "Requests without a response. If above 0, the push may have arrived."),
        ExportColumn("settled_at", .time, "When the outcome was known.", orNothing: true),
        ExportColumn("is_held_out", .boolean, "Whether the device is assigned to the holdout, which gets no push."),
    ]

    fileprivate static let eventColumns = [
        device,
        ExportColumn("run", .integer, "The run of the push. Absent if the report names no push.", orNothing: true),
        ExportColumn(
            "type", .word,
            "`arrived`, `opened`, `action`, `dismissed`, `converted`, `alerts_on`, `alerts_off` or `app_started`."),
        ExportColumn("name", .text, "The name of an action or a conversion.", orNothing: true),
        ExportColumn("value", .decimal, "The value of a conversion, in the app’s unit.", orNothing: true),
        ExportColumn("happened_at", .time, "When the event happened, by the server’s clock."),
        ExportColumn("received_at", .time, "When the report arrived. Its day is in the name of the folder."),
    ]

    fileprivate static let deviceColumns = [
        device,
        ExportColumn("installation_id", .text, "The installation’s id, which the app chose.", orNothing: true),
        ExportColumn("user_id", .text, "The person’s id in your systems.", orNothing: true),
        ExportColumn("topic", .word, "The topic: the app’s bundle id, with the suffix of the push type."), environment,
        ExportColumn("status", .word, "`active`, `suspended` or `gone`."),
        ExportColumn("status_reason", .word, "APNs’ reason for a status other than active.", orNothing: true),
        ExportColumn("status_at", .time, "When the status changed.", orNothing: true),
        ExportColumn("locale", .word, "The language, such as pt-BR.", orNothing: true),
        ExportColumn("time_zone", .word, "The time zone, such as Europe/Berlin.", orNothing: true),
        ExportColumn("country", .word, "The country’s code.", orNothing: true),
        ExportColumn("app_version", .word, "The app’s version.", orNothing: true),
        ExportColumn("os_version", .word, "The system’s version.", orNothing: true),
        ExportColumn("model", .word, "The device’s model.", orNothing: true),
        ExportColumn("alerts_allowed", .boolean, "Whether the person allows alerts.", orNothing: true),
        ExportColumn("registered_at", .time, "When the app registered the device.", orNothing: true),
        ExportColumn("last_seen_at", .time, "When the app was last seen on the device.", orNothing: true),
        ExportColumn("tags", .text, "The tags, in order, separated by semicolons.", orNothing: true),
        ExportColumn("token", .text, "The whole token, only with --with-tokens.", orNothing: true),
    ]

    fileprivate static let timelineColumns = [
        runID, campaign,
        ExportColumn("starts_at", .time, "The start of the interval."),
        ExportColumn("seconds", .integer, "The length of the interval.", unit: "s"),
        ExportColumn("accepted", .integer, "Pushes that APNs accepted in the interval."),
        ExportColumn("rejected", .integer, "Pushes that APNs rejected for good."),
        ExportColumn("unknown", .integer, "Pushes without a response."),
        ExportColumn("suppressed", .integer, "Pushes that were not sent."),
        ExportColumn("retried", .integer, "Requests that failed and were followed by another one."),
        ExportColumn("p50_ms", .number, "Half of the responses came within this time.", unit: "ms", orNothing: true),
        ExportColumn("p99_ms", .number, "99 of 100 responses came within this time.", unit: "ms", orNothing: true),
        ExportColumn(
            "reopened", .integer,
            "Rejections that were taken back in the interval. The run's report no longer counts them."),
    ]
}
