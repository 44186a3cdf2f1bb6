package import Model

/// What stands in the column `not_before` of a delivery that has no end: a time it is put off to, NULL for one that was
/// never put off, and above all times the two that are none.
package enum NotBefore {
    /// Put off before, and leased now: neither due nor fresh.
    package static let inFlight = Int64.max
    /// From here on it is no time.
    package static let heldFrom = Int64.max - 64

    /// Until its stage begins.
    package static func held(stage: Int) -> Int64 { heldFrom + Int64(min(max(stage, 0), Stage.countMax)) }

    /// Of a correction, which goes to those first who got the wrong text last: a moment just before the correction's own
    /// time, the earlier the later they got it. A second of the run corrected is a millisecond here, so that nobody
    /// seems to have waited for long.
    ///
    /// - Parameters:
    ///   - settledAt: when the run corrected put its outcome on record.
    ///   - start: of the run corrected.
    package static func newestFirst(settledAt: Timestamp, since start: Timestamp, plannedAt: Timestamp) -> Timestamp {
        let seconds = min(max(0, settledAt.seconds - start.seconds), correctedSecondsMax)
        return plannedAt + .milliseconds(-1 - seconds)
    }

    /// A day; what a run did later than that is in no order.
    private static let correctedSecondsMax: Int64 = 86_400

    /// Nil for what is no time.
    package static func moment(_ stored: Int64?) -> Timestamp? {
        stored.flatMap { $0 < heldFrom ? Timestamp(milliseconds: $0) : nil }
    }
}
