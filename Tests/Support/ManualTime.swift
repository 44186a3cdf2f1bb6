import Synchronization

/// A wall clock and a monotonic clock that stand still until told.
package final class ManualTime: Sendable {
    private let state: Mutex<(wall: Int64, uptime: Duration)>

    /// - Parameter milliseconds: of the wall clock, since 1970.
    package init(milliseconds: Int64 = 1_780_000_000_000) {
        state = Mutex((wall: milliseconds, uptime: .seconds(100)))
    }

    /// The wall clock, as a function of the time.
    package var now: @Sendable () -> Int64 { { self.state.withLock { $0.wall } } }
    package var uptime: @Sendable () -> Duration { { self.state.withLock { $0.uptime } } }

    /// Of the wall clock, since 1970.
    package var milliseconds: Int64 {
        get { state.withLock { $0.wall } }
        set { state.withLock { $0.wall = newValue } }
    }

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
