import APNs
package import Logging
package import Model
package import Storage
import Synchronization

/// The lanes of all apps in one process: a pool for each topic, made when its first run comes.
package final class Fleet: Sendable {
    /// How an app's pushes are sent, and how fast all of its runs together.
    package struct Berth: Sendable {
        package var sender: Pipeline.Sender
        package var pace: Campaign.Pace?

        package init(sender: Pipeline.Sender, pace: Campaign.Pace? = nil) {
            self.sender = sender
            self.pace = pace
        }
    }

    private struct Port {
        var pool: LanePool
        var runs = 0
        /// Made from a configuration that does not hold any more; closed with its last run.
        var isRetired = false
    }

    private struct State {
        var ports: [Int: Port] = [:]
        var current: [String: Int] = [:]
        var next = 0
        var pacer: Pacer?
    }

    /// A lane without work is closed after so long.
    private static let idleMax: Duration = .seconds(60)

    private let store: Store
    private let owner: String
    private let berth: @Sendable (_ topic: String) throws -> Berth
    private let clock: EngineClock
    private let chance: @Sendable () -> Double
    private let logger: Logger
    private let state: Mutex<State>
    private let pools: AsyncStream<LanePool>
    private let newPools: AsyncStream<LanePool>.Continuation

    /// - Parameters:
    ///   - pace: of all apps together.
    ///   - berth: asked once for each topic, and again after ``reload(pace:)``.
    package init(
        store: Store, owner: String, pace: Campaign.Pace? = nil, clock: EngineClock,
        chance: @escaping @Sendable () -> Double, logger: Logger,
        berth: @escaping @Sendable (_ topic: String) throws -> Berth
    ) {
        self.store = store
        self.owner = owner
        self.clock = clock
        self.chance = chance
        self.logger = logger
        self.berth = berth
        state = Mutex(State(pacer: pace.map(Pacer.init)))
        (pools, newPools) = AsyncStream.makeStream()
    }

    /// Works all lanes until ``close()``; cancelled, until what is on the wire is answered. To be called once.
    package func work() async {
        await withDiscardingTaskGroup { group in
            for await pool in pools { group.addTask { await pool.work() } }
        }
    }

    /// Lanes finish what they have and take nothing more.
    package func close() {
        newPools.finish()
        for port in state.withLock({ Array($0.ports.values) }) { port.pool.close() }
    }

    /// From now on runs get lanes made anew; those that go on keep theirs.
    package func reload(pace: Campaign.Pace?) {
        let idle = state.withLock { state in
            state.pacer = pace.map(Pacer.init)
            state.current = [:]
            for number in state.ports.keys { state.ports[number]?.isRetired = true }
            let idle = state.ports.filter { $0.value.runs == 0 }
            for number in idle.keys { state.ports.removeValue(forKey: number) }
            return idle.values.map(\.pool)
        }
        for pool in idle { pool.close() }
    }

    /// Carries out a run on its app's lanes. Throws what ``Berth`` throws for an app that cannot be reached at all.
    func carryOut(_ run: Run, patience: Duration?) async throws -> RunEnd {
        let (number, pool) = try enter(run.definition.campaign.topic)
        defer { leave(number) }
        return try await Pipeline(store: store, pool: pool, clock: clock, chance: chance, logger: logger)
            .carryOut(run, owner: owner, patience: patience) { _, _ in }
    }

    private func enter(_ topic: String) throws -> (number: Int, pool: LanePool) {
        let (number, pool, isNew) = try state.withLock { state in
            if let number = state.current[topic], let pool = state.ports[number]?.pool {
                state.ports[number]?.runs += 1
                return (number, pool, false)
            }
            let berth = try berth(topic)
            let pacers = [berth.pace.map(Pacer.init), state.pacer].compactMap(\.self)
            let pool = LanePool(
                sender: berth.sender, pacers: pacers, idleMax: Self.idleMax, clock: clock, chance: chance,
                logger: logger)
            state.next += 1
            state.ports[state.next] = Port(pool: pool, runs: 1)
            state.current[topic] = state.next
            return (state.next, pool, true)
        }
        if isNew { newPools.yield(pool) }
        return (number, pool)
    }

    private func leave(_ number: Int) {
        let last = state.withLock { state -> LanePool? in
            guard var port = state.ports[number] else { return nil }
            port.runs -= 1
            state.ports[number] = port
            guard port.isRetired, port.runs == 0 else { return nil }
            state.ports.removeValue(forKey: number)
            return port.pool
        }
        last?.close()
    }
}
