import Foundation
import Synchronization

/// Measures the time in which the machine ran no process, or not this one. A thread that only sleeps counts how much it
/// overslept.
///
/// Tests subtract this time from limits in seconds, which no program can keep on a stalled machine.
package final class StalledTime: Sendable {
    private static let nap: Duration = .milliseconds(20)
    /// The minimum delay that counts. A shorter one is normal on a busy machine.
    private static let least: Duration = .milliseconds(200)

    private struct State {
        var sleepsSince = ContinuousClock.now
        var stalled: Duration = .zero
        var isOver = false

        /// Counts the sleep that ends now.
        mutating func wake() {
            let now = ContinuousClock.now
            let late = now - sleepsSince - StalledTime.nap
            if late >= StalledTime.least { stalled += late }
            sleepsSince = now
        }
    }

    private let state = Mutex(State())

    /// Starts to measure.
    package init() {
        Thread { [weak self] in
            repeat { usleep(20_000) } while self?.isToGoOn() == true
        }.start()
    }

    private func isToGoOn() -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.wake()
            return true
        }
    }

    /// Stops measuring. Returns the total, including the current sleep.
    package func end() -> Duration {
        state.withLock { state in
            if !state.isOver { state.wake() }
            state.isOver = true
            return state.stalled
        }
    }
}
