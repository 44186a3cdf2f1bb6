import RelationalStore

extension SQLConstants {
    /// A stored moment as `Timestamp.iso8601` writes it.
    static func moment(_ column: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')"
    }
}
