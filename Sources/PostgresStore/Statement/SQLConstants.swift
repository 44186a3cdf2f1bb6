import RelationalStore

extension SQLConstants {
    /// Returns a stored time as `Timestamp.iso8601` writes it, without the fraction of its second.
    static func second(_ column: String) -> String {
        "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
    }
}
