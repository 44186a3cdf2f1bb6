package import Model

/// The time on which irreversible actions may rely.
///
/// A wall clock may be set forward by mistake and be right again seconds later. Causes are a typing error, a bad
/// response of a time server, or a hardware clock after a boot. Some actions at a wrong time cannot be undone: an
/// occurrence becomes missed, a delivery expires, an outcome is deleted. So a step forward of more than ``stepMax`` is
/// trusted only after ``confirmedAfter`` of the machine's uptime without a step back. Until then the clock from before
/// the step counts.
///
/// Budgets, caps, paces and retries use ``RollingWindow`` and uptime instead. A step back needs no confirmation,
/// because it makes nothing happen too early.
package struct ConfirmedTime: Hashable, Sendable {
    /// The largest step forward that is trusted immediately.
    package static let stepMax: Duration = .seconds(10)
    package static let confirmedAfter: Duration = .seconds(300)
    /// The value of ``confirmedAfter`` for deletions. They also wait for this long after a process began to watch the
    /// clock.
    package static let deletesAfter: Duration = .seconds(3600)
    /// The tolerance for readings that several processes take at slightly different moments.
    private static let readingSlack: Duration = .seconds(60)

    /// The time to act on.
    package let moment: Timestamp
    /// How far the clock is ahead of ``moment``.
    package let lag: Duration
    /// The time until the clock is trusted; zero if it is trusted now.
    package let wait: Duration

    /// - Parameter steps: the recorded steps, oldest first.
    package init(_ now: Timestamp, after steps: [ClockStep], confirmedAfter: Duration = Self.confirmedAfter) {
        var (later, unconfirmed, wait) = (Duration.zero, Duration.zero, Duration.zero)
        for step in steps.reversed() {
            // The uptime since the step. Each later step moved the wall clock, so it is subtracted.
            let passed = now - step.at - later
            later += step.by
            // A negative time means that the step is from an earlier boot, whose clock was further ahead.
            guard passed > .zero - Self.readingSlack else { continue }
            guard passed < confirmedAfter else { break }
            unconfirmed += step.by
            wait = max(wait, confirmedAfter - max(passed, .zero))
        }
        let isBelieved = unconfirmed <= Self.stepMax
        lag = isBelieved ? .zero : unconfirmed
        moment = now - lag
        self.wait = isBelieved ? .zero : wait
    }
}

extension LeaseRequest {
    /// Whether the lease would do something irreversible by the wall clock at ``now``: start a wave, open or close
    /// quiet hours, or let deliveries expire.
    package var goesByWallClock: Bool {
        quiet != nil || hasWaves || expiry?.moment(wave: nil).map { now >= $0 } ?? false
    }

    /// Returns how long nothing may be leased because the wall clock is not confirmed. Returns `nil` if the clock is
    /// confirmed, or makes no difference.
    package func clockWait(after steps: [ClockStep]) -> Duration? {
        guard goesByWallClock else { return nil }
        let time = ConfirmedTime(now, after: steps)
        guard time.wait > .zero else { return nil }
        if quiet == nil, !hasWaves, let end = expiry?.moment(wave: nil), time.moment >= end { return nil }
        return time.wait
    }
}
