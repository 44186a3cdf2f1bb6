package import Model
package import Platform

/// The clocks as a parameter: tests pass clocks that they control.
package struct WallClock: Sendable {
    /// The wall clock, which a person may set. It is for records and for times that people have planned.
    package let now: @Sendable () -> Timestamp
    /// The time since the machine started. It cannot be set, and it continues while the machine sleeps. It is for paces
    /// and pauses.
    package let uptime: @Sendable () -> Duration
    /// The identifier of the machine's boot. If it is empty, the boot is unknown, and steps of ``now`` are not
    /// noticed.
    package let boot: String
    /// The same moment by the clocks of a ``StartGate``, which also show the pause of a virtual machine.
    package let moment: @Sendable () -> BootMoment
    /// Returns early when the task is cancelled.
    package let sleep: @Sendable (Duration) async -> Void

    package init(
        boot: String = "", moment: @escaping @Sendable () -> BootMoment = { .now() },
        now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.boot = boot
        self.moment = moment
        self.now = now
        self.uptime = uptime
        self.sleep = sleep
    }

    /// Returns both clocks at one moment. Reads them again if the process was held up between the two reads.
    package func reading() -> ClockReading {
        var reading = ClockReading(wall: now(), uptime: uptime(), boot: boot)
        for _ in 0..<5 {
            let before = uptime()
            reading.wall = now()
            reading.uptime = uptime()
            if reading.uptime - before < .milliseconds(20) { break }
        }
        return reading
    }
}

extension Signal {
    /// Returns at the first change after `seen`, after `limit`, or when the task is cancelled.
    package func wait(after seen: UInt64, atMost limit: Duration, clock: WallClock) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait(after: seen) }
            group.addTask { await clock.sleep(limit) }
            await group.next()
            group.cancelAll()
        }
    }
}
