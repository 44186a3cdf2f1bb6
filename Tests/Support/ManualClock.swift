import Dispatch
import Foundation
package import Model
import Synchronization

/// Time that stands still until a test moves it, as a wall clock and as one that nobody can set, by which sleepers sleep.
/// Tests wait for a sleeper, never for the machine's own clock.
///
/// A clock that no test moves any more is abandoned: from then on it runs by itself, so that what sleeps by it ends and its
/// test fails, instead of waiting for ever. The clock is abandoned when a task is cancelled while it waits for a sleeper, as
/// by the time limit of its test, and when nobody has used it for ``stallMax``.
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
        var isAbandoned = false
        /// How often somebody fell asleep.
        var sleeps = 0
        /// By the machine's clock.
        var usedAt = ContinuousClock.now
    }

    /// Longer than a test works without a look at the clock, shorter than a test may take.
    private static let stallMax: Duration = .seconds(300)

    private let state: Mutex<State>

    package init(_ now: Timestamp = Timestamp(milliseconds: 1_800_000_000_000)) {
        state = Mutex(State(now: now))
        abandonWhenStalled(after: Self.stallMax)
    }

    package var now: Timestamp { used { $0.now } }
    package var uptime: Duration { used { $0.uptime } }

    private func used<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            state.usedAt = .now
            return body(&state)
        }
    }

    /// Somebody sets the wall clock.
    package func setWall(by step: Duration) {
        used { $0.now = $0.now + step }
    }

    package func advance(by duration: Duration) { _ = wake(by: duration) }

    /// Moves on, and returns once as many fell asleep again as it woke: a loop has then done what it does between two sleeps,
    /// however slow the machine is. Whoever ends instead of sleeping again is waited for in vain, so long by the machine's
    /// clock.
    package func advance(by duration: Duration, settlingWithin patience: Duration) async {
        let asleep = wake(by: duration)
        let end = ContinuousClock.now + patience
        while ContinuousClock.now < end, !isOver, state.withLock({ $0.sleeps < asleep }) {
            try? await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Returns what the count of sleeps is when all whom it woke sleep again.
    private func wake(by duration: Duration) -> Int {
        let (due, asleep) = used { state -> ([CheckedContinuation<Void, Never>], Int) in
            Self.move(&state, by: duration)
            let uptime = state.uptime
            let due = state.sleepers.filter { $0.value.deadline <= uptime }
            for id in due.keys { state.sleepers.removeValue(forKey: id) }
            return (due.values.map(\.continuation), state.sleeps + due.count)
        }
        for continuation in due { continuation.resume() }
        return asleep
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
            if isOver { return }
            // Whoever works for longer than a heartbeat is waited for as well: its time must not run away meanwhile.
            await advance(by: .seconds(1), settlingWithin: .seconds(1))
        }
    }

    /// Moves on by `step` whenever somebody sleeps for less than a second, as whoever waits for a pace does, until
    /// ``release()``.
    package func run(inShortStepsOf step: Duration, _ moved: @Sendable () -> Void) async {
        while true {
            await sleeper { $0.duration < .seconds(1) }
            if isOver { return }
            advance(by: step)
            moved()
        }
    }

    /// Returns once somebody sleeps until just then.
    package func sleeper(until moment: Timestamp) async {
        await sleeper { $0.moment == moment }
    }

    private func sleeper(_ matches: @escaping @Sendable (Sleeper) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = used { state in
                    let isOver = state.isReleased || state.isAbandoned || Task.isCancelled
                    if isOver || state.sleepers.values.contains(where: matches) { return true }
                    state.watchers.append(Watcher(matches: matches, continuation: continuation))
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            if !state.withLock({ $0.isReleased }) { abandon() }
        }
    }

    private var isOver: Bool { state.withLock { $0.isReleased || $0.isAbandoned } || Task.isCancelled }

    /// Moves on by `step` whenever a task sleeps for at least `shortest`, until ``release()``.
    package func run(inStepsOf step: Duration, forSleepsOf shortest: Duration = .seconds(1)) async {
        while true {
            await sleeper(atLeast: shortest)
            if isOver { return }
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

    /// Wakes the sleepers and those who wait for one.
    private func abandon() {
        let woken = state.withLock { state in
            state.isAbandoned = true
            let last = state.sleepers.values.map(\.deadline).max() ?? state.uptime
            Self.move(&state, by: max(Duration.zero, last - state.uptime))
            defer { (state.sleepers, state.watchers) = ([:], []) }
            return state.sleepers.values.map(\.continuation) + state.watchers.map(\.continuation)
        }
        for continuation in woken { continuation.resume() }
    }

    /// Takes some real time, so that a loop that sleeps leaves the processor to others.
    private func sleepByItself(_ duration: Duration) async {
        try? await Task.sleep(for: .milliseconds(10))
        state.withLock { Self.move(&$0, by: duration) }
    }

    private static func move(_ state: inout State, by duration: Duration) {
        state.now = state.now + duration
        state.uptime += duration
    }

    /// On a queue of its own: the threads that tests share may all be blocked.
    private static let stalls = DispatchQueue(label: "stalled-clocks")

    private func abandonWhenStalled(after wait: Duration) {
        Self.stalls.asyncAfter(deadline: .now() + .seconds(Int(wait.components.seconds))) { [weak self] in
            self?.abandonIfStalled()
        }
    }

    private func abandonIfStalled() {
        let (left, sleeps, isWaitedFor) = state.withLock { state in
            let left = Self.stallMax - (ContinuousClock.now - state.usedAt)
            return (left, state.sleepers.values.map(\.duration), !state.watchers.isEmpty)
        }
        guard left <= .zero, !sleeps.isEmpty || isWaitedFor else {
            return abandonWhenStalled(after: max(.seconds(10), left))
        }
        let words = "a manual clock stood still for \(Self.stallMax), with sleepers for \(sleeps): it runs on its own\n"
        FileHandle.standardError.write(Data(words.utf8))
        abandon()
    }

    /// Returns when the clock was moved so far, or the task is cancelled.
    package func sleep(_ duration: Duration) async {
        if state.withLock({ $0.isAbandoned }) { return await sleepByItself(duration) }
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
        let (isOver, watchers) = used { state -> (Bool, [Watcher]) in
            if Task.isCancelled || state.isAbandoned { return (true, []) }
            let sleeper = Sleeper(
                deadline: state.uptime + duration, moment: state.now + duration, duration: duration,
                continuation: continuation)
            state.sleepers[id] = sleeper
            state.sleeps += 1
            let seen = state.watchers.filter { $0.matches(sleeper) }
            state.watchers.removeAll { $0.matches(sleeper) }
            return (false, seen)
        }
        if isOver { continuation.resume() }
        for watcher in watchers { watcher.continuation.resume() }
    }
}
