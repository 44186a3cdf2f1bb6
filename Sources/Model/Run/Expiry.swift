/// Until when a run tries to deliver: its planned time plus `expires_after`; with waves, each wave's own time plus that.
package struct Expiry: Hashable, Sendable {
    package var plannedAt: Timestamp
    /// Nil: no limit of ours. Zero: one attempt, not stored by APNs.
    package var after: Duration?

    package init(plannedAt: Timestamp, after: Duration?) {
        self.plannedAt = plannedAt
        self.after = after
    }

    /// When APNs and Fanfare both stop trying. Nil: no limit of ours.
    ///
    /// - Parameter wave: when the delivery's wave starts; nil: it has none.
    package func moment(wave: Timestamp?) -> Timestamp? {
        after.flatMap { $0 == .zero ? nil : (wave ?? plannedAt) + $0 }
    }

    /// `apns-expiration` in seconds: 0 means one attempt and no storage, nil leaves the header out.
    package func headerSeconds(wave: Timestamp?) -> Int64? {
        after.map { $0 == .zero ? 0 : ((wave ?? plannedAt) + $0).seconds }
    }
}
