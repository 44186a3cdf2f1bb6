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

    /// Nil for what is no time.
    package static func moment(_ stored: Int64?) -> Timestamp? {
        stored.flatMap { $0 < heldFrom ? Timestamp(milliseconds: $0) : nil }
    }
}
