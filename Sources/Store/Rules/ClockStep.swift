package import Model

/// What the clocks of a machine show at one moment.
package struct ClockReading: Hashable, Sendable {
    package var wall: Timestamp
    /// Since the machine started: nobody can set it, and it goes on while the machine sleeps.
    package var uptime: Duration
    /// Names the machine's start: ``uptime`` compares with that of no other. Empty: with none at all.
    package var boot: String

    package init(wall: Timestamp, uptime: Duration, boot: String) {
        self.wall = wall
        self.uptime = uptime
        self.boot = boot
    }
}

/// Somebody set the wall clock, forward or back.
package struct ClockStep: Hashable, Sendable, CustomStringConvertible {
    /// Less than this is a clock being steered, as NTP does all the time.
    package static let least: Duration = .seconds(1)

    /// What the wall clock would have shown when it was noticed. What it had shown up to the step is not later.
    package var before: Timestamp
    /// Forward; negative: back.
    package var by: Duration

    package init(before: Timestamp, by: Duration) {
        self.before = before
        self.by = by
    }

    /// What the wall clock showed when it was noticed.
    package var at: Timestamp { before + by }

    /// Between two readings of one machine since one start; nil: the clocks went on together.
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
