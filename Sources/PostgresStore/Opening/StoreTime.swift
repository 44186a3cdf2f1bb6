package import Model

/// Whose clock says what is due, when an outcome came, and what the silent budget holds.
package enum StoreTime: Sendable {
    /// The server's, for all senders alike: a sender whose own clock is wrong neither opens the budget early nor sends
    /// late. The server's clock is to be kept by NTP; set back, a slot is free later than it could be.
    case database
    /// Those of whoever calls: for tests that name their moments.
    case caller

    /// In milliseconds, at the moment it is evaluated.
    static let now = milliseconds("clock_timestamp()")
    /// In milliseconds, when the statement began: the same for all of it, so that an index finds what is due.
    static let statement = milliseconds("statement_timestamp()")
    /// In milliseconds, when the server started.
    static let serverStart = milliseconds("pg_postmaster_start_time()")
    /// In microseconds, at the moment it is evaluated.
    static let nowMicroseconds = "floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    private static func milliseconds(_ moment: String) -> String {
        "floor(extract(epoch FROM \(moment)) * 1000)::bigint"
    }
}

extension PostgresSession {
    /// The moment by the store's clock, while the caller's shows `caller`.
    package func moment(_ caller: Timestamp) throws -> Timestamp {
        guard time == .database else { return caller }
        return try first("SELECT \(StoreTime.now)") { try $0.timestamp(0) } ?? caller
    }

    /// To be given for a parameter behind which the server's own clock is asked: nil where that decides.
    func given(_ caller: Timestamp) -> Timestamp? { time == .database ? nil : caller }
}
