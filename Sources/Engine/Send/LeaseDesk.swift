import Model
import Storage
import Synchronization

/// Hands out leases of one run and environment, one at a time, to whichever lane asks first; holds all lanes back while
/// the endpoint is in trouble.
final class LeaseDesk: Sendable {
    /// What waits may be replaced from elsewhere, and the wall clock may be set: nobody sleeps on for hours.
    static let lookAgainAfter: Duration = .seconds(30)

    /// Looked at in one go when all may be expired; of a wave that is not over yet so many are sent into the trouble.
    private static let expiredMax = 200

    private let store: Store
    private let template: LeaseRequest
    private let control: RunControl
    private let pacer: Pacer?
    private let clock: EngineClock
    private let chance: @Sendable () -> Double
    private let endpoint: String
    private let brake = Mutex(EndpointBrake())
    private let gate = AsyncGate()
    private let cursor = Mutex<Int64>(0)

    /// - Parameter template: the request for each lease but for its cursor, time and limit.
    init(
        store: Store, template: LeaseRequest, endpoint: String, control: RunControl, pacer: Pacer?, clock: EngineClock,
        chance: @escaping @Sendable () -> Double
    ) {
        self.store = store
        self.template = template
        self.control = control
        self.pacer = pacer
        self.clock = clock
        self.chance = chance
        self.endpoint = endpoint
    }

    var environment: PushEnvironment { template.environment }

    /// Hears what the responses say about the endpoint; stops the run when it is down for good.
    func saw(_ signs: some Sequence<EndpointBrake.Sign>, at now: Timestamp) {
        let downSince = brake.withLock { brake in
            for sign in signs { brake.saw(sign, at: now, chance: chance) }
            return brake.downSince
        }
        guard let downSince else { return }
        control.stop(
            .unreachable(
                "\(endpoint) has answered nothing but errors since \(downSince.iso8601), or not at all; look at Apple's "
                    + "system status page and at the network, then run the same command again"))
    }

    /// Deliveries of a whole lease.
    var leaseMax: Int { template.limit }

    /// The next lease with at least one delivery; waits while others may still come back for a retry, for their time
    /// or from freezing. Nil: nothing will ever come, or the run is to stop.
    ///
    /// - Parameter most: deliveries that whoever asks has room for; never more than a whole lease is given.
    func next(atMost most: Int) async throws -> Lease? {
        try await gate.pass {
            while control.halt == nil, !Task.isCancelled {
                let seen = control.changed.version
                let paced = try await paceAllows(min(most, leaseMax))
                guard paced > 0 else { continue }
                let limit = min(paced, try await brakeAllows())
                guard limit > 0 else { continue }
                let lease = try await lease(limit: limit)
                if !lease.deliveries.isEmpty { return lease }
                if lease.suppressed > 0 {
                    control.changed.raise()
                    continue
                }
                if try await isDone() { return nil }
                await wait(after: seen, until: lease.nextDue)
            }
            return nil
        }
    }

    private func lease(limit: Int) async throws -> Lease {
        var request = template
        request.after = cursor.withLock { $0 }
        request.now = clock.now()
        request.limit = limit
        let lease = try await store.lease(request)
        cursor.withLock { $0 = lease.cursor }
        ServiceMetrics.suppressed(lease.suppressions)
        pacer?.leased(lease.deliveries.count, at: clock.now())
        return lease
    }

    /// How many may be leased now; 0 after having waited for the pace.
    private func paceAllows(_ limit: Int) async throws -> Int {
        guard let pacer else { return limit }
        let seen = control.changed.version
        switch pacer.allowance(at: clock.now(), limit: limit) {
        case .now(let count): return count
        case .after(let wait):
            await control.changed.wait(after: seen, atMost: wait, clock: clock)
            return 0
        }
    }

    /// How many may be leased now; 0 after having waited for the endpoint. Once all is expired nothing is sent any more,
    /// and it may be written down at once.
    private func brakeAllows() async throws -> Int {
        let seen = control.changed.version
        let now = clock.now()
        switch brake.withLock({ $0.allowance(at: now) }) {
        case .full: return template.limit
        case .probe: return EndpointBrake.probeMax
        case .after(let moment):
            if try await isDone() { return template.limit }
            let expiresAt = template.expiry?.moment(wave: nil)
            if let expiresAt, now >= expiresAt { return min(template.limit, Self.expiredMax) }
            let wait = min(moment, expiresAt ?? moment) - now
            await control.changed.wait(after: seen, atMost: min(wait, Self.lookAgainAfter), clock: clock)
            return 0
        }
    }

    /// Whether nothing is left to lease, now or later, as one snapshot of the store tells it: what this process has
    /// heard of the freeze may be newer than the counts it has read, and then nothing seems to be pending.
    private func isDone() async throws -> Bool {
        guard let run = try await store.run(template.run) else { return false }
        control.observed(run.counts)
        return run.isFrozen && run.counts.pending == 0 && run.counts.leased == 0
    }

    private func wait(after seen: UInt64, until due: Timestamp?) async {
        guard let due else { return await control.changed.wait(after: seen) }
        let wait = min(due - clock.now(), Self.lookAgainAfter)
        guard wait > .zero else { return }
        await control.changed.wait(after: seen, atMost: wait, clock: clock)
    }
}
