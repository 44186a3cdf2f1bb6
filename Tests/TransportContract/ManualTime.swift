import Synchronization

/// A wall clock and a monotonic clock that stand still until told.
package final class ManualTime: Sendable {
    private let state = Mutex((wall: Int64(1_780_000_000_000), uptime: Duration.seconds(100)))

    package init() {}

    package var now: @Sendable () -> Int64 { { self.state.withLock { $0.wall } } }
    package var uptime: @Sendable () -> Duration { { self.state.withLock { $0.uptime } } }

    /// Both clocks go on.
    package func advance(by duration: Duration) {
        state.withLock { state in
            state.wall += Int64(duration / .milliseconds(1))
            state.uptime += duration
        }
    }

    /// Somebody sets the wall clock.
    package func setWall(by duration: Duration) {
        state.withLock { $0.wall += Int64(duration / .milliseconds(1)) }
    }
}

/// What happened, in order, from several tasks.
package final class Notes: Sendable {
    private let state = Mutex<[String]>([])

    package init() {}

    package var all: [String] { state.withLock { $0 } }

    package func add(_ note: String) { state.withLock { $0.append(note) } }
}
