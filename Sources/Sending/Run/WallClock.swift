import APNs
import Foundation
package import Logging
package import Model
package import Store
import Synchronization

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

    /// Whether moments that somebody waits for are to be looked at again: the clock was set since the last look, or a
    /// minute has passed, in which others may have noticed a step and another one back. To be asked about once a second.
    package mutating func look() async -> Bool {
        let reading = clock.reading()
        let isSet = last.flatMap { ClockStep(from: $0, to: reading) } != nil
        last = reading
        guard isSet || noted.map({ reading.uptime - $0 >= Self.noteEvery }) ?? true else { return false }
        await note(reading)
        return true
    }

    private mutating func note(_ reading: ClockReading) async {
        // A store that cannot be written now is told with the next step or in a minute.
        guard let step = try? await store.noteClocks(reading, by: actor) else { return noted = reading.uptime }
        noted = nil
        logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
    }
}

/// Reads the clock for what cannot be undone: schedules, feeds and deletions, see ``ConfirmedTime``.
package struct ConfirmedClock: Sendable {
    private let store: any RunLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger

    package init(store: any RunLog, clock: WallClock, actor: Actor, logger: Logger) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
    }

    /// Records a step that no process has noticed yet, then judges the time by all steps on record.
    package func now(confirmedAfter: Duration = ConfirmedTime.confirmedAfter) async throws -> ConfirmedTime {
        let reading = clock.reading()
        if let step = try await store.noteClocks(reading, by: actor) {
            logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
        }
        let steps = try await store.clockSteps(since: reading.wall - confirmedAfter * 2)
        return ConfirmedTime(reading.wall, after: steps, confirmedAfter: confirmedAfter)
    }
}

/// The time by which a sender settles responses. It notices each step of the wall clock without asking the store, and has
/// it recorded before the next settlement: only a step on record is undone in the waits when the clock is set back.
final class SettlementClock: Sendable {
    private static let stepsMax = 200

    private struct State {
        var last: ClockReading
        var steps: [ClockStep]
        /// Steps that this process noticed, and how many of them are on record for certain.
        var noticed = 0
        var recorded = 0
    }

    private let store: any RunLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter steps: those on record, oldest first.
    init(store: any RunLog, clock: WallClock, actor: Actor, logger: Logger, after steps: [ClockStep] = []) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
        state = Mutex(State(last: clock.reading(), steps: steps))
    }

    /// Records a step that no process has noticed yet: a claim and what follows it go by those on record. A store that takes
    /// nothing now is no reason not to send.
    static func noteStep(_ store: any RunLog, clock: WallClock, actor: Actor, logger: Logger) async {
        _ = try? await ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger).now()
    }

    /// Continues from the steps on record.
    static func following(
        _ store: any RunLog, clock: WallClock, actor: Actor, logger: Logger
    ) async -> SettlementClock {
        let steps = try? await store.clockSteps(since: clock.now() - ConfirmedTime.confirmedAfter * 2)
        return SettlementClock(store: store, clock: clock, actor: actor, logger: logger, after: steps ?? [])
    }

    /// Returns both clocks, and how far the wall clock is ahead of the confirmed time, see ``ConfirmedTime``.
    func now() async -> (reading: ClockReading, lag: Duration) {
        let reading = clock.reading()
        let (noticed, isOnRecord, lag) = state.withLock { state in
            let step = ClockStep(from: state.last, to: reading)
            state.last = reading
            if let step {
                state.steps = (state.steps + [step]).suffix(Self.stepsMax)
                state.noticed += 1
            }
            return (
                state.noticed, state.noticed == state.recorded, ConfirmedTime(reading.wall, after: state.steps).lag
            )
        }
        if !isOnRecord { await record(reading, noticed) }
        return (reading, lag)
    }

    /// A store that takes nothing now is asked again before the next settlement, and the heartbeat tells of it.
    private func record(_ reading: ClockReading, _ noticed: Int) async {
        do {
            if let step = try await store.noteClocks(reading, by: actor) {
                logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
            }
            state.withLock { $0.recorded = max($0.recorded, noticed) }
        } catch {
            logger.debug("wall clock's step not recorded", metadata: .facts([.error: "\(error)"]))
        }
    }
}

/// This start of the machine, as the kernel names it.
package enum MachineStart {
    /// With the time name space: a container may have an uptime of its own. Empty where the system does not tell.
    package static let name: String = {
        guard !BootClock.bootID.isEmpty else { return "" }
        let space = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/time")) ?? ""
        return BootClock.bootID + space.filter(\.isNumber)
    }()
}
