import Synchronization

/// A wall clock and a monotonic clock that stand still until a test advances them.
package final class ManualTime: Sendable {
    private let state: Mutex<(wall: Int64, uptime: Duration)>

    /// - Parameter milliseconds: the time of the wall clock, in milliseconds since 1970.
    package init(milliseconds: Int64 = 1_780_000_000_000) {
        state = Mutex((wall: milliseconds, uptime: .seconds(100)))
    }

    /// A function that returns the time of the wall clock.
    package var now: @Sendable () -> Int64 { { self.state.withLock { $0.wall } } }
    package var uptime: @Sendable () -> Duration { { self.state.withLock { $0.uptime } } }

    /// The time of the wall clock, in milliseconds since 1970.
    package var milliseconds: Int64 {
        get { state.withLock { $0.wall } }
        set { state.withLock { $0.wall = newValue } }
    }

    /// Advances both clocks.
    package func advance(by duration: Duration) {
        state.withLock { state in
            state.wall += Int64(duration / .milliseconds(1))
            state.uptime += duration
        }
    }

    /// Sets the wall clock, without advancing the monotonic clock.
    package func setWall(by duration: Duration) {
        state.withLock { $0.wall += Int64(duration / .milliseconds(1)) }
    }
}
