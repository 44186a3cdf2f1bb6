package import Logging
package import Model
import Platform
package import Store
import Synchronization

/// Notices that the wall clock was set, for a caller that waits for a time of day. The step is recorded and logged
/// once.
package struct ClockWatch {
    /// The time between two checks of the store, where another process may have noticed a step.
    private static let noteEvery: Duration = .seconds(60)

    private let store: any AuditLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger
    private var last: ClockReading?
    private var noted: Duration?

    package init(store: any AuditLog, clock: WallClock, actor: Actor, logger: Logger) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
    }

    /// Returns whether the caller must compute the moments it waits for again. Call this once a second.
    ///
    /// Returns `true` if the clock was set since the last call. Also returns `true` once a minute, because other
    /// processes may have noticed a step and its reversal meanwhile.
    package mutating func look() async -> Bool {
        let reading = clock.reading()
        let isSet = last.flatMap { ClockStep(from: $0, to: reading) } != nil
        last = reading
        guard isSet || noted.map({ reading.uptime - $0 >= Self.noteEvery }) ?? true else { return false }
        await note(reading)
        return true
    }

    private mutating func note(_ reading: ClockReading) async {
        // If there is no step, or the store cannot be written, check again at the next step or in a minute.
        guard let step = try? await store.noteClocks(reading, by: actor) else { return noted = reading.uptime }
        noted = nil
        logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
    }
}

/// Reads the clock for actions that cannot be undone: schedules, feeds and deletions. See ``ConfirmedTime``.
package struct ConfirmedClock: Sendable {
    private let store: any AuditLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger

    package init(store: any AuditLog, clock: WallClock, actor: Actor, logger: Logger) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
    }

    /// Records a step that no process has noticed yet. Then computes the confirmed time from all recorded steps.
    package func now(confirmedAfter: Duration = ConfirmedTime.confirmedAfter) async throws -> ConfirmedTime {
        let reading = clock.reading()
        if let step = try await store.noteClocks(reading, by: actor) {
            logger.warning("wall clock set", metadata: .facts([.reason: "\(step)"]))
        }
        let steps = try await store.clockSteps(since: reading.wall - confirmedAfter * 2)
        return ConfirmedTime(reading.wall, after: steps, confirmedAfter: confirmedAfter)
    }
}

/// The clock by which a sender settles responses. It notices each step of the wall clock without a query to the store.
/// It records the step before the next settlement, because only recorded steps are corrected in waits when the clock is
/// set back.
final class SettlementClock: Sendable {
    private static let stepsMax = 200

    private struct State {
        var last: ClockReading
        var steps: [ClockStep]
        /// The number of steps that this process noticed, and how many of these are certainly recorded.
        var noticed = 0
        var recorded = 0
    }

    private let store: any AuditLog
    private let clock: WallClock
    private let actor: Actor
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter steps: the recorded steps, oldest first.
    init(store: any AuditLog, clock: WallClock, actor: Actor, logger: Logger, after steps: [ClockStep] = []) {
        self.store = store
        self.clock = clock
        self.actor = actor
        self.logger = logger
        state = Mutex(State(last: clock.reading(), steps: steps))
    }

    /// Records a step that no process has noticed yet, because a claim and the calls after it use the recorded steps.
    /// Ignores errors: a temporarily unavailable store does not prevent sending.
    static func noteStep(_ store: any AuditLog, clock: WallClock, actor: Actor, logger: Logger) async {
        _ = try? await ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger).now()
    }

    /// Returns a clock that continues from the recorded steps.
    static func following(
        _ store: any AuditLog, clock: WallClock, actor: Actor, logger: Logger
    ) async -> SettlementClock {
        let steps = try? await store.clockSteps(since: clock.now() - ConfirmedTime.confirmedAfter * 2)
        return SettlementClock(store: store, clock: clock, actor: actor, logger: logger, after: steps ?? [])
    }

    /// Returns both clocks, and how far the wall clock is ahead of the confirmed time. See ``ConfirmedTime``.
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

    /// Records the step. If the store is unavailable, the next settlement retries, and the heartbeat reports the
    /// outage.
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
