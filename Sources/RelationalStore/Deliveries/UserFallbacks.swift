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

    /// Makes suppressed deliveries pending again, and returns their number.
    ///
    /// - Parameter gone: the devices whose delivery has just ended because they are gone.
    package func replace(_ gone: [Int64]) throws -> Int {
        guard !gone.isEmpty, let fallback = UserFallback(try RunRow.require(db, run)) else { return 0 }
        let next = try next(fallback, gone)
        guard !next.isEmpty else { return 0 }
        // Another transaction may have replaced the device of the same user in the meantime.
        return try db.execute(
            .once(
                """
                UPDATE \(Session.dialect.deliveries(of: run)) SET
                    state = \(DeliveryState.pending.code), reason = NULL, not_before = $2, changed_at = $3
                WHERE \(Session.dialect.isOf(run: run)) AND device_id \(Session.dialect.isAny(1))
                    AND state = \(DeliveryState.suppressed.code)
                    AND reason = '\(SuppressionReason.duplicateOfUser.rawValue)'
                """), values: [next, fallback.notBefore(at: now), now])
    }
}

extension DeliveryCounts {
    /// Counts suppressed deliveries as pending again.
    package mutating func reopen(_ count: Int) {
        suppressed -= count
        pending += count
    }
}
