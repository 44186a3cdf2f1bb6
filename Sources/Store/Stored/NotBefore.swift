package import Model

/// The values of the column `not_before` of a delivery without an end state. A value is the time that the delivery is
/// put off to, or NULL if it was never put off. Values from ``heldFrom`` on are not times and have a special meaning.
package enum NotBefore {
    /// The delivery was put off before and is leased now: it is neither due nor new.
    package static let inFlight = Int64.max
    /// The first value that is not a time.
    package static let heldFrom = Int64.max - 64

    /// Returns the value of a delivery that is held until its stage begins.
    package static func held(stage: Int) -> Int64 { heldFrom + Int64(min(max(stage, 0), Stage.countMax)) }

    /// Returns the value of a delivery of a correction, which goes first to the devices that got the wrong text last.
    /// The value is a moment just before the planned time of the correction. The later the wrong text was sent, the
    /// earlier is the value. One second of the corrected run becomes one millisecond, so that no delivery seems to
    /// have waited for long.
    ///
    /// - Parameters:
    ///   - settledAt: when the corrected run recorded its outcome.
    ///   - start: the start of the corrected run.
    package static func newestFirst(settledAt: Timestamp, since start: Timestamp, plannedAt: Timestamp) -> Timestamp {
        let seconds = min(max(0, settledAt.seconds - start.seconds), correctedSecondsMax)
        return plannedAt + .milliseconds(-1 - seconds)
    }

    /// The seconds of a day. Later outcomes of the corrected run all get the same value.
    private static let correctedSecondsMax: Int64 = 86_400

    /// Returns `nil` for a value that is not a time.
    package static func moment(_ stored: Int64?) -> Timestamp? {
        stored.flatMap { $0 < heldFrom ? Timestamp(milliseconds: $0) : nil }
    }
}
