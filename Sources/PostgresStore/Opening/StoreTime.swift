package import Model

/// The clock that decides which deliveries are due, when an outcome came, and which pushes count for the silent
/// budget.
package enum StoreTime: Sendable {
    /// The server's clock, for all senders. A sender whose own clock is wrong neither sends too early for the budget
    /// nor too late. NTP must keep the server's clock right. If that clock is set back, a slot becomes free later
    /// than necessary.
    case database
    /// The caller's clock, for tests that set their own times.
    case caller

    /// The time in milliseconds when the expression is evaluated.
    static let now = milliseconds("clock_timestamp()")
    /// The time in milliseconds when the statement began. It is the same for the whole statement, so that an index
    /// can find the due deliveries.
    static let statement = milliseconds("statement_timestamp()")
    /// The time in milliseconds when the server started.
    static let serverStart = milliseconds("pg_postmaster_start_time()")
    /// The time in microseconds when the expression is evaluated.
    static let nowMicroseconds = "floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    private static func milliseconds(_ moment: String) -> String {
        "floor(extract(epoch FROM \(moment)) * 1000)::bigint"
    }
}

extension PostgresSession {
    /// Returns the time by the store's clock, while the caller's clock shows `caller`.
    package func moment(_ caller: Timestamp) throws -> Timestamp {
        guard time == .database else { return caller }
        return try first("SELECT \(StoreTime.now)") { try $0.timestamp(0) } ?? caller
    }

    /// Returns the value of a time parameter, or `nil` if the statement must use the server's clock.
    func given(_ caller: Timestamp) -> Timestamp? { time == .database ? nil : caller }
}
