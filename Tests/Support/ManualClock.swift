import Dispatch
import Foundation
package import Model
import Synchronization

/// A wall clock and a monotonic clock that stand still until a test advances them. Sleepers use the monotonic clock.
/// Tests wait for a sleeper, never for the machine's clock.
///
/// An abandoned clock advances automatically. Its sleepers then wake, and the test fails instead of waiting for ever.
/// The clock is abandoned if a task is cancelled while it waits for a sleeper, for example by the test's time limit.
/// The clock is also abandoned if it was not used for ``stallMax``.
package final class ManualClock: Sendable {
    private struct Sleeper {
        /// The time of the monotonic clock at which the sleeper wakes.
        var deadline: Duration
        /// The time of the wall clock at which the sleeper wakes.
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
        /// The number of sleeps that have begun.
        var sleeps = 0
        /// The time of the last use, by the machine's clock.
        var usedAt = ContinuousClock.now
    }

    /// The time without a use after which the clock is abandoned. It is longer than a test works without the clock, and
    /// shorter than a test may take.
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

    /// Sets the wall clock, without advancing the monotonic clock.
    package func setWall(by step: Duration) {
        used { $0.now = $0.now + step }
    }

    package func advance(by duration: Duration) { _ = wake(by: duration) }

    /// Advances both clocks. Returns when as many sleeps have begun as it ended, or after `patience`. A loop has then
    /// finished its work between two sleeps, however slow the machine is. A sleeper that exits instead of sleeping
    /// again makes the method wait for the whole of `patience`, by the machine's clock.
    package func advance(by duration: Duration, settlingWithin patience: Duration) async {
        let asleep = wake(by: duration)
        let end = ContinuousClock.now + patience
        while ContinuousClock.now < end, !isOver, state.withLock({ $0.sleeps < asleep }) {
            try? await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Advances both clocks. Returns the number of sleeps at which all woken sleepers sleep again.
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

    /// Returns when a task sleeps for at least this duration.
    package func sleeper(atLeast duration: Duration) async {
        await sleeper { $0.duration >= duration }
    }

    /// Returns when a task sleeps for exactly this duration.
    package func sleeper(of duration: Duration) async {
        await sleeper { $0.duration == duration }
    }

    /// Advances by one second whenever a task sleeps for exactly one second, as a heartbeat does, until ``release()``.
    ///
    /// - Parameter patience: the longest time, by the machine's clock, that the woken tasks get before the next second.
    package func runBySeconds(settlingWithin patience: Duration = .seconds(1)) async {
        while true {
            await sleeper(of: .seconds(1))
            if isOver { return }
            // A task that works for longer than a heartbeat needs time as well, so the clock must not run ahead of it.
            await advance(by: .seconds(1), settlingWithin: patience)
        }
    }

    /// Advances by `step` whenever a task sleeps for less than a second, as a task that waits for its pace does, until
    /// ``release()``.
    package func run(inShortStepsOf step: Duration, _ moved: @Sendable () -> Void) async {
        while true {
            await sleeper { $0.duration < .seconds(1) }
            if isOver { return }
            advance(by: step)
            moved()
        }
    }

    /// Returns when a task sleeps until exactly this time.
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

    /// Advances by `step` whenever a task sleeps for at least `shortest`, until ``release()``.
    package func run(inStepsOf step: Duration, forSleepsOf shortest: Duration = .seconds(1)) async {
        while true {
            await sleeper(atLeast: shortest)
            if isOver { return }
            advance(by: step)
        }
    }

    /// Ends all current and later waits for a sleeper.
    package func release() {
        let watchers = state.withLock { state in
            state.isReleased = true
            defer { state.watchers = [] }
            return state.watchers
        }
        for watcher in watchers { watcher.continuation.resume() }
    }

    /// Wakes all sleepers and all tasks that wait for one.
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

    /// Sleeps on an abandoned clock. It takes 10 ms of real time, so that a loop leaves the processor to other tasks.
    private func sleepByItself(_ duration: Duration) async {
        try? await Task.sleep(for: .milliseconds(10))
        state.withLock { Self.move(&$0, by: duration) }
    }

    private static func move(_ state: inout State, by duration: Duration) {
        state.now = state.now + duration
        state.uptime += duration
    }

    /// The queue of the stall checks. The threads that tests share may all be blocked.
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

    /// Returns when the clock has advanced by this duration, or when the task is cancelled.
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
