import RelationalStore

extension SQLConstants {
    /// A stored moment as `Timestamp.iso8601` writes it.
    static func moment(_ column: String) -> String { time(column, "YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"") }

    /// The same without what is less than a second.
    static func second(_ column: String) -> String { time(column, "YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"") }

    private static func time(_ column: String, _ format: String) -> String {
        "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', '\(format)')"
    }
}
