package import Logging
package import Model
package import Senders
package import Store
import Synchronization

/// Sends runs in this process, for the daemon and for commands alike. It owns the lanes of all apps: one group for each
/// topic, created for the topic's first run.
package final class LocalSender: Sendable {
    private struct Lanes {
        var lanes: LaneGroup
        var runs = 0
        /// Created from a configuration that is no longer current; closed with its last run.
        var isRetired = false
    }

    private struct State {
        var lanes: [Int: Lanes] = [:]
        var current: [String: Int] = [:]
        var next = 0
        /// The stops as they were last read.
        var stops = StopOrders()
        /// The runs that were tried since the last reload. `nil` before the first reload: a restart shortens no pause
        /// of a run.
        var tried: Set<Int64>?
    }

    /// The time after which a lane without work is closed.
    private static let idleMax: Duration = .seconds(60)

    private let store: any SendingStore
    private let actor: Actor
    private let sender: @Sendable (_ topic: String) throws -> SendingSetup
    private let clock: WallClock
    private let jitter: @Sendable () -> Double
    private let logger: Logger
    private let registration: SenderRegistration?
    private let journals: SenderJournals
    /// The stops that this process obeys immediately.
    package let stops: StopWatch
    private let state = Mutex(State())
    private let groups: AsyncStream<LaneGroup>
    private let newGroups: AsyncStream<LaneGroup>.Continuation

    /// - Parameters:
    ///   - registration: the registration behind the actor's name.
    ///   - sender: returns the setup of a topic; called once for each topic, and again after ``reload()``.
    package init(
        store: any SendingStore, actor: Actor, clock: WallClock,
        jitter: @escaping @Sendable () -> Double, logger: Logger, registration: SenderRegistration? = nil,
        journals: SenderJournals = .none, stops: StopWatch = StopWatch(),
        sender: @escaping @Sendable (_ topic: String) throws -> SendingSetup
    ) {
        self.store = store
        self.actor = actor
        self.clock = clock
        self.jitter = jitter
        self.logger = logger
        self.registration = registration
        self.journals = journals
        self.stops = stops
        self.sender = sender
        (groups, newGroups) = AsyncStream.makeStream()
    }

    /// Runs all lanes until ``close()``. After a cancellation, it returns once the requests in flight have their
    /// responses. The process calls this once.
    package func work() async {
        await withDiscardingTaskGroup { group in
            for await lanes in groups { group.addTask { await lanes.run() } }
        }
    }

    /// Closes all lanes: they finish the pushes that they have and accept no more.
    package func close() {
        newGroups.finish()
        for lane in state.withLock({ Array($0.lanes.values) }) { lane.lanes.close() }
    }

    /// Gives later runs new lanes; current runs keep theirs. Each run that is paused or backs off is tried once
    /// immediately, see ``isReloaded(since:)``.
    package func reload() {
        let idle = state.withLock { state in
            state.tried = []
            state.current = [:]
            for number in state.lanes.keys { state.lanes[number]?.isRetired = true }
            let idle = state.lanes.filter { $0.value.runs == 0 }
            for number in idle.keys { state.lanes.removeValue(forKey: number) }
            return idle.values.map(\.lanes)
        }
        for lanes in idle { lanes.close() }
    }

    /// Returns whether the configuration was read again since the run was last tried. The reload may have removed an
    /// obstacle, such as a missing app or a wrong key.
    package func isReloaded(since run: Int64) -> Bool { state.withLock { $0.tried.map { !$0.contains(run) } ?? false } }

    /// Endpoints that give this process no responses.
    package var outages: [EndpointOutage] { state.withLock { Array($0.lanes.values) }.flatMap(\.lanes.outages) }

    /// The number of lanes available to the runs in progress, open or about to open.
    package var lanes: Int {
        state.withLock { state in
            state.lanes.values.filter { $0.runs > 0 }.map { $0.lanes.sender }
                .map { $0.lanesPerEnvironment * $0.endpoints.count }.reduce(0, +)
        }
    }

    /// Recovers the runs of dead processes and their deliveries in flight.
    /// On a store of one machine, only a cancelled run: this process may claim any other run meanwhile.
    package func recoverAbandoned() async throws -> [AbandonedRun] {
        try await recovery.recoverAbandoned(isOnlyCancelled: !store.isShared)
    }

    /// Leaves a run on which this process is recorded, and recovers its deliveries in flight. The caller makes sure
    /// that this process does not execute the run.
    package func leave(_ run: Run) async throws -> RecoveryCounts { try await recovery.leave(run, as: actor) }

    private var recovery: Recovery { Recovery(store: store, journals: journals, clock: clock) }

    /// Returns the stops in force, from the store and from the STOP file. Records the file's stops in the store for
    /// other machines, and logs changes.
    package func stopsInForce() async throws -> StopOrders {
        try await stops.record(in: store, now: clock.now())
        let now = StopOrders(try await store.stops().orders + stops.orders.orders)
        let before = state.withLock { state in
            defer { state.stops = now }
            return state.stops
        }
        for order in now.orders where before[order.scope] == nil {
            logger.warning("sending is stopped", metadata: .facts([.reason: "\(order.refusal)"]))
        }
        for order in before.orders where now[order.scope] == nil {
            logger.notice("a stop is lifted", metadata: .facts([.reason: "\(order.scope.summary)"]))
        }
        return now
    }

    /// Returns once no stop of all sending is in force, or when the task is cancelled.
    package func waitForLift() async throws {
        while !Task.isCancelled, try await stopsInForce()[.all] != nil { await clock.sleep(.seconds(1)) }
    }

    /// The stops as of the last ``stopsInForce()``.
    package var knownStops: StopOrders { state.withLock { $0.stops } }

    /// Throws if other processes can no longer see that this process is alive.
    package func requireIntact() throws { try registration?.requireIntact() }

    /// The handling of a run whose app is not configured, or has no usable key.
    package enum Unusable: Sendable {
        /// The run pauses, with the error as its reason.
        case pausesRun
        /// The error is thrown, and the run stays as it is.
        case isThrown
    }

    /// Executes a run on its app's lanes.
    ///
    /// - Parameter watch: receives the run's control when the run is claimed.
    package func execute(
        _ run: Run, idleLimit: Duration?, unusable: Unusable = .pausesRun,
        watch: @escaping @Sendable (RunControl, LatencyRecorder) -> Void = { _, _ in }
    ) async throws -> RunEnd {
        // Record the try before the configuration is used, so that a reload in the meantime allows another try.
        state.withLock { _ = $0.tried?.insert(run.id) }
        let entered: (number: Int, lanes: LaneGroup)
        do {
            entered = try enter(run.definition.campaign.topic)
        } catch  where unusable == .isThrown || SendingSetup.isPassing(error) {
            // The key may be correct, so the caller retries the run.
            throw error
        } catch {
            return try await pipeline(nil).refuse(run, as: actor, reason: "\(error)")
        }
        defer { releaseLanes(entered.number) }
        return try await pipeline(entered.lanes).execute(run, as: actor, idleLimit: idleLimit, watch: watch)
    }

    private func pipeline(_ lanes: LaneGroup?) -> Pipeline {
        let lanes = lanes ?? LaneGroup(sender: .nowhere(journals, stops), clock: clock, jitter: jitter, logger: logger)
        return Pipeline(
            store: store, lanes: lanes, clock: clock, jitter: jitter, logger: logger, registration: registration)
    }

    private func enter(_ topic: String) throws -> (number: Int, lanes: LaneGroup) {
        let (number, lanes, isNew) = try state.withLock { state in
            if let number = state.current[topic], let lanes = state.lanes[number]?.lanes {
                state.lanes[number]?.runs += 1
                return (number, lanes, false)
            }
            let lanes = LaneGroup(
                sender: try sender(topic), idleMax: Self.idleMax, clock: clock, jitter: jitter,
                logger: logger)
            state.next += 1
            state.lanes[state.next] = Lanes(lanes: lanes, runs: 1)
            state.current[topic] = state.next
            return (state.next, lanes, true)
        }
        if isNew { newGroups.yield(lanes) }
        return (number, lanes)
    }

    private func releaseLanes(_ number: Int) {
        let last = state.withLock { state -> LaneGroup? in
            guard var lane = state.lanes[number] else { return nil }
            lane.runs -= 1
            state.lanes[number] = lane
            guard lane.isRetired, lane.runs == 0 else { return nil }
            state.lanes.removeValue(forKey: number)
            return lane.lanes
        }
        last?.close()
    }
}
