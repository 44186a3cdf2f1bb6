package import Model

extension Timestamp {
    /// The time in UTC without seconds, for messages: `2026-11-22 09:00`.
    package var minute: String { String(iso8601.prefix(16).replacing("T", with: " ")) }
}
