package import Model

/// The readings of a machine's clocks at one moment.
package struct ClockReading: Hashable, Sendable {
    package var wall: Timestamp
    /// The time since the machine started. It cannot be set, and it continues while the machine sleeps.
    package var uptime: Duration
    /// The identifier of the machine's boot. ``uptime`` is comparable only within one boot. Empty if the boot is
    /// unknown: then no other reading is comparable.
    package var boot: String

    package init(wall: Timestamp, uptime: Duration, boot: String) {
        self.wall = wall
        self.uptime = uptime
        self.boot = boot
    }
}

/// A step of the wall clock, forward or back.
package struct ClockStep: Hashable, Sendable, CustomStringConvertible {
    /// The smallest difference that counts as a step. Smaller differences are normal corrections by NTP.
    package static let least: Duration = .seconds(1)

    /// The time that the wall clock would have shown without the step, when the step was noticed. It showed no later
    /// time before the step.
    package var before: Timestamp
    /// The length of the step; negative if the clock was set back.
    package var by: Duration

    package init(before: Timestamp, by: Duration) {
        self.before = before
        self.by = by
    }

    /// The time that the wall clock showed when the step was noticed.
    package var at: Timestamp { before + by }

    /// Computes the step between two readings of one machine in one boot. Returns `nil` if the clocks advanced
    /// together, or if the boots differ.
    package init?(from earlier: ClockReading, to later: ClockReading) {
        guard earlier.boot == later.boot, !later.boot.isEmpty else { return nil }
        let expected = earlier.wall + (later.uptime - earlier.uptime)
        let by = later.wall - expected
        guard by >= Self.least || by <= .zero - Self.least else { return nil }
        self.init(before: expected, by: by)
    }

    /// `the wall clock was set forward by 1h, from 2026-11-21T09:00:00Z to 2026-11-21T10:00:00Z`.
    package var description: String {
        let (direction, length) = by > .zero ? ("forward", by) : ("back", .zero - by)
        return
            "the wall clock was set \(direction) by \(WrittenDuration.text(length)), from \(before.iso8601) to \(at.iso8601)"
    }
}
