package import Model
import Synchronization

/// Time that stands still until a test moves it, as a wall clock and as one that nobody can set, by which sleepers sleep.
/// Tests wait for a sleeper, never for the machine's own clock.
package final class ManualClock: Sendable {
    private struct Sleeper {
        /// By the clock that nobody can set.
        var deadline: Duration
        /// What the wall clock is to show then.
        var moment: Timestamp
        var duration: Duration
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct Watcher {
        var matches: @Sendable (Sleeper) -> Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var now: Timestamp
        var uptime: Duration = .seconds(1000)
        var next = 0
        var sleepers: [Int: Sleeper] = [:]
        var watchers: [Watcher] = []
        var isReleased = false
    }

    private let state: Mutex<State>

    package init(_ now: Timestamp = Timestamp(milliseconds: 1_800_000_000_000)) {
        state = Mutex(State(now: now))
    }

    package var now: Timestamp { state.withLock { $0.now } }
    package var uptime: Duration { state.withLock { $0.uptime } }

    /// Somebody sets the wall clock.
    package func setWall(by step: Duration) {
        state.withLock { $0.now = $0.now + step }
    }

    package func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now + duration
            state.uptime += duration
            let uptime = state.uptime
            let due = state.sleepers.filter { $0.value.deadline <= uptime }
            for id in due.keys { state.sleepers.removeValue(forKey: id) }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }

    /// Returns once somebody sleeps for at least this long.
    package func sleeper(atLeast duration: Duration) async {
        await sleeper { $0.duration >= duration }
    }

    /// Moves on second by second, each time once somebody sleeps for just one: as a heartbeat does, which has looked
    /// around by then. Until ``release()``.
    package func runBySeconds() async {
        while true {
            await sleeper { $0.duration == .seconds(1) }
            if state.withLock({ $0.isReleased }) { return }
            advance(by: .seconds(1))
        }
    }

    /// Moves on by `step` whenever somebody sleeps for less than a second, as whoever waits for a pace does, until
    /// ``release()``.
    package func run(inShortStepsOf step: Duration, _ moved: @Sendable () -> Void) async {
        while true {
            await sleeper { $0.duration < .seconds(1) }
            if state.withLock({ $0.isReleased }) { return }
            advance(by: step)
            moved()
        }
    }

    /// Returns once somebody sleeps until just then.
    package func sleeper(until moment: Timestamp) async {
        await sleeper { $0.moment == moment }
    }

    private func sleeper(_ matches: @escaping @Sendable (Sleeper) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.isReleased || state.sleepers.values.contains(where: matches) { return true }
                state.watchers.append(Watcher(matches: matches, continuation: continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Moves on whenever somebody sleeps, until ``release()``.
    package func run(inStepsOf step: Duration) async {
        while true {
            await sleeper(atLeast: .seconds(1))
            if state.withLock({ $0.isReleased }) { return }
            advance(by: step)
        }
    }

    /// Lets go of those who wait for a sleeper that does not come any more, now and later.
    package func release() {
        let watchers = state.withLock { state in
            state.isReleased = true
            defer { state.watchers = [] }
            return state.watchers
        }
        for watcher in watchers { watcher.continuation.resume() }
    }

    /// Returns when the clock was moved so far, or the task is cancelled.
    package func sleep(_ duration: Duration) async {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in fallAsleep(id, duration, continuation) }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume()
        }
    }

    private func fallAsleep(_ id: Int, _ duration: Duration, _ continuation: CheckedContinuation<Void, Never>) {
        let (isOver, watchers) = state.withLock { state -> (Bool, [Watcher]) in
            if Task.isCancelled { return (true, []) }
            let sleeper = Sleeper(
                deadline: state.uptime + duration, moment: state.now + duration, duration: duration,
                continuation: continuation)
            state.sleepers[id] = sleeper
            let seen = state.watchers.filter { $0.matches(sleeper) }
            state.watchers.removeAll { $0.matches(sleeper) }
            return (false, seen)
        }
        if isOver { continuation.resume() }
        for watcher in watchers { watcher.continuation.resume() }
    }
}
