import Synchronization

/// A wall clock and a monotonic clock that stand still until told.
final class ManualTime: Sendable {
    private let state = Mutex((wall: Int64(1_780_000_000_000), uptime: Duration.seconds(100)))

    var now: @Sendable () -> Int64 { { self.state.withLock { $0.wall } } }
    var uptime: @Sendable () -> Duration { { self.state.withLock { $0.uptime } } }

    /// Both clocks go on.
    func advance(by duration: Duration) {
        state.withLock { state in
            state.wall += Int64(duration / .milliseconds(1))
            state.uptime += duration
        }
    }

    /// Somebody sets the wall clock.
    func setWall(by duration: Duration) {
        state.withLock { $0.wall += Int64(duration / .milliseconds(1)) }
    }
}
