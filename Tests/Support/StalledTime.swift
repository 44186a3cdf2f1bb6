import Foundation
import Synchronization

/// How much time a machine gave to nobody, or not to this process: what a thread that only sleeps has slept too long.
///
/// For promises in seconds, which no program can keep on a machine that stands still.
package final class StalledTime: Sendable {
    private static let nap: Duration = .milliseconds(20)
    /// A shorter one is how a busy machine is.
    private static let least: Duration = .milliseconds(200)

    private struct State {
        var sleepsSince = ContinuousClock.now
        var stalled: Duration = .zero
        var isOver = false

        /// Takes the nap that ends now into account.
        mutating func wake() {
            let now = ContinuousClock.now
            let late = now - sleepsSince - StalledTime.nap
            if late >= StalledTime.least { stalled += late }
            sleepsSince = now
        }
    }

    private let state = Mutex(State())

    /// From now on.
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

    /// Until now, also of a nap that goes on; nothing is counted any more.
    package func end() -> Duration {
        state.withLock { state in
            if !state.isOver { state.wake() }
            state.isOver = true
            return state.stalled
        }
    }
}
