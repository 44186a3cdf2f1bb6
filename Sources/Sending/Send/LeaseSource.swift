import Model
import Store
import Synchronization

/// Hands out leases of one run and environment, as far as its pace and those it shares with others allow; holds all lanes
/// back while the endpoint is in trouble.
final class LeaseSource: Sendable {
    enum Answer: Sendable {
        case lease(Lease)
        /// Nothing now. Worth asking again when the run's control changes after `seen`, or at that moment.
        case rest(seen: UInt64, until: Timestamp?)
        /// Nothing will ever come, or the run is to stop.
        case over
    }

    /// What waits for its silent budget may be replaced from elsewhere: nobody sleeps on for hours.
    static let lookAgainAfter: Duration = .seconds(30)
    /// Looked at in one go when all may be expired; of a wave that is not over yet so many are sent into the trouble.
    private static let expiredMax = 200
    /// The wall clock may be set.
    static let sleepMax: Duration = .seconds(600)

    let control: RunControl
    private let store: any SendingStore
    private let template: LeaseRequest
    private let pacers: [Pacer]
    private let breaker: EndpointBreaker
    private let clock: WallClock
    private let cursor = Mutex<Int64>(0)

    /// - Parameter template: the request for each lease but for its cursor, time and limit.
    init(
        store: any SendingStore, template: LeaseRequest, control: RunControl, pacers: [Pacer], breaker: EndpointBreaker,
        clock: WallClock
    ) {
        self.store = store
        self.template = template
        self.control = control
        self.pacers = pacers
        self.breaker = breaker
        self.clock = clock
    }

    /// To be called by one task at a time.
    ///
    /// - Parameter most: deliveries that whoever asks has room for; never more than a whole lease is given.
    func ask(atMost most: Int) async -> Answer {
        while true {
            let seen = control.changed.version
            let now = clock.now()
            var limit: Int
            switch Pacer.allowance(of: pacers, at: now, limit: min(most, template.limit)) {
            case .now(let count): limit = count
            case .after(let wait): return control.halt == nil ? .rest(seen: seen, until: now + wait) : .over
            }
            guard control.halt == nil else { return .over }
            do {
                if let moment = try await brakeHolds(&limit, now) {
                    return .rest(seen: seen, until: min(moment, now + Self.lookAgainAfter))
                }
                guard control.beginLease() else { return .over }
                let lease = try await lease(limit: limit)
                control.tookLease(lease.deliveries.count)
                if !lease.deliveries.isEmpty { return .lease(lease) }
                if lease.suppressed > 0 {
                    control.changed.raise()
                    continue
                }
                if try await isDone() {
                    control.finished()
                    return .over
                }
                control.rests(template.environment, until: lease.nextDue)
                return .rest(seen: seen, until: lease.nextDue.map(wakeUp))
            } catch is CancellationError {
                // The lane that asked is over, and not the run: whoever is left asks again.
                control.changed.raise()
                return .rest(seen: seen, until: nil)
            } catch {
                control.fail(error)
                return .over
            }
        }
    }

    /// Until when the endpoint is to be left alone; nil: so many may be leased. Once all is expired nothing is sent any
    /// more, and it may be written down at once.
    private func brakeHolds(_ limit: inout Int, _ now: Timestamp) async throws -> Timestamp? {
        switch breaker.allowance(at: now) {
        case .full: break
        case .probe: limit = min(limit, CircuitBreaker.probeMax)
        case .after(let moment):
            if try await isDone() { return nil }
            let expiresAt = template.expiry?.moment(wave: nil)
            guard let expiresAt, now >= expiresAt else { return min(moment, expiresAt ?? moment) }
            limit = min(limit, Self.expiredMax)
        }
        return nil
    }

    private func lease(limit: Int) async throws -> Lease {
        var request = template
        request.after = cursor.withLock { $0 }
        request.now = clock.now()
        request.limit = limit
        do {
            let lease = try await store.lease(request)
            cursor.withLock { $0 = lease.cursor }
            ServiceMetrics.suppressed(lease.suppressions)
            for pacer in pacers { pacer.leased(lease.deliveries.count, at: clock.now()) }
            return lease
        } catch {
            control.tookLease(0)
            throw error
        }
    }

    private func wakeUp(_ due: Timestamp) -> Timestamp {
        min(due, clock.now() + (template.silentBudget == nil ? Self.sleepMax : Self.lookAgainAfter))
    }

    /// Whether nothing is left to lease, now or later, as one snapshot of the store tells it: what this process has
    /// heard of the freeze may be newer than the counts it has read, and then nothing seems to be pending.
    private func isDone() async throws -> Bool {
        guard let run = try await store.run(template.run) else { return true }
        control.observed(run.counts)
        return run.isFrozen && run.counts.pending == 0 && run.counts.leased == 0
    }
}
