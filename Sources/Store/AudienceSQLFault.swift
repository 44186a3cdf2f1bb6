import Model

/// Why an `audience_sql` was refused: each names the thing.
package enum AudienceSQLFault: Hashable, Sendable {
    /// It does, or reads, something that is not allowed: `reading device.token`, `the function random()`.
    case refused(String)
    /// SQLite does not understand it, in its own words.
    case invalid(String)
    case severalStatements
    case columns(Int)
    /// A row, from 1, that is not an integer.
    case notAnID(row: Int, kind: String)
    /// A parameter other than `:now`.
    case unknownParameter(String)
    case tooSlow(limit: Duration)
}

extension AudienceSQLFault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused(let what):
            "\(what) is not allowed; write one SELECT of device ids that reads only \(Self.views)"
        case .invalid(let reason): "\(reason); it may read \(Self.views)"
        case .severalStatements: "more than one statement; write one SELECT of device ids"
        case .columns(let count): "it selects \(count) columns; select the device ids alone"
        case .notAnID(let row, let kind): "row \(row) is \(kind), not a device id; select `id` or `device_id`"
        case .unknownParameter(let name):
            "nothing is given for the parameter \(name); only :now, in milliseconds, is known"
        case .tooSlow(let limit):
            "it took longer than \(WrittenDuration.text(limit)); make it simpler, or import a segment"
        }
    }

    private static let views = AnalystViewNames.all.joined(separator: ", ")
}

/// The views that an `audience_sql` may read, in every store.
package enum AnalystViewNames {
    package static let all = ["device_view", "tag_view", "segment_view", "delivery_view", "run_view"]
}
