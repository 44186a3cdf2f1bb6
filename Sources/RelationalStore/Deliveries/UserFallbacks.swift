package import Model
import Store

/// Replaces the delivery of a user whose device is gone by a delivery to another device of the user.
package struct UserFallbacks<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let now: Timestamp

    package init(_ db: Session, run: Int64, at now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// The maximum number of devices to replace in one transaction.
    package static var atOnce: Int { 500 }

    /// Returns the devices whose delivery has ended because they are gone.
    package func gone() throws -> [Int64] {
        let (rejected, suppressed) = (DeliveryState.rejected, DeliveryState.suppressed)
        return try db.all(
            .once(
                """
                SELECT device_id \(DeliveryPages<Session>.ofFailed(run, rejected))
                    AND status = \(UserFallback.goneStatus)
                UNION ALL
                SELECT device_id \(DeliveryPages<Session>.ofFailed(run, suppressed))
                    AND reason = '\(SuppressionReason.tokenGone.rawValue)'
                """), values: [run]
        ) { try $0.int64(0) }
    }

    /// Returns whether ``replace(_:)`` would find another device for one of these.
    package func canReplace(_ gone: [Int64]) throws -> Bool {
        guard let fallback = UserFallback(try RunRow.require(db, run)) else { return false }
        return try !next(fallback, gone).isEmpty
    }

    private func next(_ fallback: UserFallback, _ gone: [Int64]) throws -> [Int64] {
        Set(try db.devicesOfUsers(of: gone, in: run).compactMap { fallback.next(of: $0) }).sorted()
    }

    /// Makes suppressed deliveries pending again, and returns when they were suppressed.
    ///
    /// - Parameter gone: the devices whose delivery has just ended because they are gone.
    package func replace(_ gone: [Int64]) throws -> ReplacedDeliveries {
        guard !gone.isEmpty, let fallback = UserFallback(try RunRow.require(db, run)) else { return .none }
        let next = try next(fallback, gone)
        guard !next.isEmpty else { return .none }
        let suppressed = """
            \(Session.dialect.isOf(run: run)) AND device_id \(Session.dialect.isAny(1))
                AND state = \(DeliveryState.suppressed.code)
                AND reason = '\(SuppressionReason.duplicateOfUser.rawValue)'
            """
        let since = try db.all(
            .once("SELECT device_id, changed_at FROM \(Session.dialect.deliveries(of: run)) WHERE \(suppressed)"),
            values: [next]
        ) { (try $0.int64(0), try $0.timestamp(1)) }
        let suppressedAt = Dictionary(since) { first, _ in first }
        // Another transaction may have replaced the device of the same user in the meantime. Only the rows that this
        // statement returns count.
        let replaced = try db.all(
            .once(
                """
                UPDATE \(Session.dialect.deliveries(of: run)) SET
                    state = \(DeliveryState.pending.code), reason = NULL, not_before = $2, changed_at = $3
                WHERE \(suppressed)
                RETURNING device_id
                """), values: [next, fallback.notBefore(at: now), now]
        ) { try $0.int64(0) }
        return ReplacedDeliveries(suppressedAt: replaced.map { suppressedAt[$0] ?? now })
    }
}

/// Suppressed deliveries that are pending again.
package struct ReplacedDeliveries {
    package static var none: ReplacedDeliveries { ReplacedDeliveries(suppressedAt: []) }

    /// When each delivery was suppressed. The timeline counts it there no longer.
    let suppressedAt: [Timestamp]

    package var count: Int { suppressedAt.count }
}

extension DeliveryCounts {
    /// Counts suppressed deliveries as pending again.
    package mutating func reopen(_ replaced: ReplacedDeliveries) {
        suppressed -= replaced.count
        pending += replaced.count
    }
}
