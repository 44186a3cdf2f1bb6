import Foundation
package import Logging
package import Model
package import Store
import Synchronization

/// "Something changed": wakes everybody who waits, and loses no change between a look and a wait.
///
/// Take ``version`` first, look at the world, then wait for a version after the one taken.
package final class Signal: Sendable {
    private struct State {
        var version: UInt64 = 0
        var nextWaiter: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())
    private let next = Mutex<Signal?>(nil)

    package init() {}

    package var version: UInt64 { state.withLock { $0.version } }

    package func raise() {
        let woken = state.withLock { state in
            state.version += 1
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in woken { waiter.resume() }
        next.withLock { $0 }?.raise()
    }

    /// From now on, raising this one raises the other too.
    package func pass(on other: Signal?) {
        next.withLock { $0 = other }
    }

    /// Returns at the first change after `seen`, whether the task is cancelled or not.
    package func waitUncancelled(after seen: UInt64) async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.version != seen { return true }
                state.waiters[waiter] = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// Returns at the first change after `seen`, or when the task is cancelled.
    package func wait(after seen: UInt64) async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.version != seen || Task.isCancelled { return true }
                    state.waiters[waiter] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
        }
    }

    /// The same with a limit: returns at the first change after `seen` or after `limit`.
    package func wait(after seen: UInt64, atMost limit: Duration, clock: WallClock) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait(after: seen) }
            group.addTask { await clock.sleep(limit) }
            await group.next()
            group.cancelAll()
        }
    }
}

/// Lets one task at a time through, in order of arrival.
final class AsyncGate: Sendable {
    private struct State {
        var isTaken = false
        var queue: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func pass<Value: Sendable>(_ body: () async throws -> Value) async rethrows -> Value {
        await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isTaken {
                    state.queue.append(continuation)
                    return false
                }
                state.isTaken = true
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.queue.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.queue.removeFirst()
        }
        next?.resume()
    }
}

/// Time as a parameter: tests bring clocks that they turn by hand.
package struct WallClock: Sendable {
    /// What people call the time: somebody may set it. For what is written down, and for what people have planned.
    package let now: @Sendable () -> Timestamp
    /// Since the machine started: nobody sets it, and it goes on while the machine sleeps. For paces and pauses.
    package let uptime: @Sendable () -> Duration
    /// Names the machine's start; empty where it is not known, and no step of ``now`` is noticed.
    package let boot: String
    /// Returns early when the task is cancelled.
    package let sleep: @Sendable (Duration) async -> Void

    package init(
        boot: String = "", now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.boot = boot
        self.now = now
        self.uptime = uptime
        self.sleep = sleep
    }

    /// Both clocks at one moment: read again when the process was held up in between.
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

/// Notices that somebody set the wall clock, for whoever waits for one of its moments, and sees to it that the step is
/// written down and told once.
package struct ClockWatch {
    /// Between looks at the store, where another process may have noticed a step.
    private static let noteEvery: Duration = .seconds(60)

    private let store: any RunLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger
    private var last: ClockReading?
    private var noted: Duration?

    package init(store: any RunLog, clock: WallClock, actor: Actor, logger: Logger) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
    }

    /// Whether it was set since the last look: moments that somebody waits for are to be looked at again. To be asked
    /// about once a second.
    package mutating func look() async -> Bool {
        let reading = clock.reading()
        let step = last.flatMap { ClockStep(from: $0, to: reading) }
        last = reading
        if step != nil || noted.map({ reading.uptime - $0 >= Self.noteEvery }) ?? true { await note(reading) }
        return step != nil
    }

    private mutating func note(_ reading: ClockReading) async {
        // A store that cannot be written now is told with the next step or in a minute.
        guard let step = try? await store.noteClocks(reading, by: actor) else { return noted = reading.uptime }
        noted = nil
        logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
    }
}

/// This start of the machine, as the kernel names it.
package enum MachineStart {
    /// With the time name space: a container may have an uptime of its own. Empty where the system does not tell.
    package static let name: String = {
        guard let id = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else {
            return ""
        }
        let space = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/time")) ?? ""
        return id.prefix(36) + space.filter(\.isNumber)
    }()
}
