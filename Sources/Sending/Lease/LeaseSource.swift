import APNs
package import Model
import Platform
import Store
import Synchronization

/// Leases deliveries of one run and environment, within its own pace, the shared paces, and the endpoint's circuit
/// breaker.
final class LeaseSource: Sendable {
    enum Next: Sendable {
        case lease(Lease)
        /// Nothing now. Call again when the run's signal changes after `seen`, or at the given moment.
        case nothing(seen: UInt64, until: Timestamp?)
        /// Nothing yet, but more rows are unread. The caller serves the other runs first, then calls again immediately.
        case yields(looked: Int)
        /// Nothing is left to lease, or the run is to stop.
        case exhausted
    }

    /// The longest wait between two checks for a run with a silent budget, because another run may replace its waiting
    /// deliveries.
    static let lookAgainAfter: Duration = .seconds(30)
    /// The longest wait in a shared store, because other senders may release or finish deliveries without a signal to
    /// this process.
    private static let sharedLook: Duration = .seconds(1)
    /// The maximum number of deliveries per lease after the run's expiry while the breaker is open. Deliveries of a
    /// wave that is not over are still sent.
    private static let expiredMax = 200
    /// The time between two checks of a sender that is too slow to lease.
    private static let slowPause: Duration = .milliseconds(250)
    /// The time between two checks of an unavailable store.
    private static let storePause: Duration = .seconds(1)
    /// The longest wait for a moment of the wall clock, which may be set meanwhile.
    static let sleepMax: Duration = .seconds(600)

    let control: RunControl
    private let store: any SendingStore
    private let template: LeaseRequest
    /// The run's own pace.
    private let pacer: Pacer?
    private let breaker: EndpointBreaker
    private let clock: WallClock
    private let position: Mutex<Position>

    /// The position after the previous lease.
    private struct Position {
        var cursor: Int64 = 0
        /// See ``Lease/storeAhead``.
        var storeAhead: Duration = .zero
        var reading: ClockReading
    }

    /// - Parameter template: the request for each lease, without cursor, time and limit.
    init(
        store: any SendingStore, template: LeaseRequest, control: RunControl, pacer: Pacer?, breaker: EndpointBreaker,
        clock: WallClock
    ) {
        self.store = store
        self.template = template
        self.control = control
        self.pacer = pacer
        self.breaker = breaker
        self.clock = clock
        position = Mutex(Position(reading: clock.reading()))
    }

    /// Returns the next lease, or when to call again. Only one task may call this at a time.
    ///
    /// - Parameter most: the number of deliveries for which the caller has room. A lease holds at most the template's
    ///   limit.
    func next(atMost most: Int) async -> Next {
        while true {
            let seen = control.progress.changed.version
            let activity = control.progress.activity
            let now = clock.now()
            // What was leased while nothing may start would later start at once, faster than the pace.
            guard control.trust.gate.answer(at: .now()) != .lapsed else {
                return isStopped ? .exhausted : .nothing(seen: seen, until: now + Self.slowPause)
            }
            var limit = size(atMost: min(most, template.limit))
            guard limit > 0 else { return isStopped ? .exhausted : .nothing(seen: seen, until: now + Self.sharedLook) }
            switch pacer?.allowance(at: clock.uptime(), limit: limit) {
            case nil: break
            case .now(let count): limit = count
            case .after(let wait): return isStopped ? .exhausted : .nothing(seen: seen, until: now + wait)
            }
            guard !isStopped else { return .exhausted }
            guard !store.isShared || control.share.mayLease else {
                return .nothing(seen: seen, until: now + Self.slowPause)
            }
            do {
                if let moment = try await endpointPause(&limit, now) {
                    return .nothing(seen: seen, until: min(moment, now + Self.lookAgainAfter))
                }
                guard control.beginLease(in: template.environment) else { return .exhausted }
                let lease = try await lease(limit: limit)
                control.storeBackoff.taken(.lease)
                control.progress.tookLease(lease.deliveries.count)
                if lease.moved > 0 { control.progress.grew(audience: 0) }
                if !lease.deliveries.isEmpty { return .lease(lease) }
                if let order = lease.stop {
                    control.stop(.stopped(order))
                    return .exhausted
                }
                if lease.isPaused {
                    control.stop(.stateChanged(.paused))
                    return .exhausted
                }
                // There is nothing to send, so the probe was not used.
                breaker.probeUnused(at: clock.reading())
                if lease.isCutShort {
                    if lease.suppressed > 0 { control.progress.changed.raise() }
                    return .yields(looked: LeaseRound.rowsMax)
                }
                if lease.suppressed > 0 {
                    control.progress.changed.raise()
                    continue
                }
                if try await isDone() {
                    control.progress.finished()
                    return .exhausted
                }
                if let wait = lease.paceWait { return .nothing(seen: seen, until: now + wait) }
                // Convert the moment to this machine's clock. If the store's clock is behind, the moment may be past
                // here, and the caller would call again without a pause.
                let due = lease.nextDue.map { $0 - lease.storeAhead }
                control.progress.idles(template.environment, until: due, since: activity)
                return .nothing(seen: seen, until: wakeUp(due))
            } catch is CancellationError {
                // The calling lane has ended, but the run has not. Wake another lane to call again.
                control.progress.changed.raise()
                return .nothing(seen: seen, until: nil)
            } catch let error as StoreError where error.isPassing {
                control.storeBackoff.refused(.lease, error, at: now)
                return .nothing(seen: control.progress.changed.version, until: now + Self.storePause)
            } catch {
                control.fail(error)
                return .exhausted
            }
        }
    }

    private func size(atMost most: Int) -> Int {
        guard store.isShared, control.progress.isFrozen else { return most }
        return control.share.leaseSize(
            atMost: most, control.progress.counts, held: control.progress.inFlight, at: clock.uptime())
    }

    private var isStopped: Bool { control.decision.reason(in: template.environment) != nil }

    /// Returns until when nothing may be sent to the endpoint, or `nil` if `limit` deliveries may be leased now. After
    /// the run's expiry, a lease records expired deliveries and sends nothing, so it ignores the breaker.
    private func endpointPause(_ limit: inout Int, _ now: Timestamp) async throws -> Timestamp? {
        switch breaker.allowance(at: clock.reading()) {
        case .full: break
        case .probe: limit = min(limit, CircuitBreaker.probeMax)
        case .single: limit = 1
        case .after(let wait):
            let moment = now + wait
            if try await isDone() { return nil }
            let expiresAt = template.expiry?.moment(wave: nil).map { $0 - position.withLock(\.storeAhead) }
            guard let expiresAt, now >= expiresAt else { return min(moment, expiresAt ?? moment) }
            limit = min(limit, Self.expiredMax)
        }
        return nil
    }

    private func lease(limit: Int) async throws -> Lease {
        var request = template
        request.after = position.withLock(\.cursor)
        let clocks = clock.reading()
        request.now = clocks.wall
        let goesByClocks = request.silentBudget != nil || request.caps != nil || request.hasStages
        // The lease records the step first, so that a delivery that waits for its retry waits as long as before.
        let isSet = position.withLock { ClockStep(from: $0.reading, to: clocks) != nil }
        if goesByClocks || isSet || request.goesByWallClock || !request.paces.isEmpty { request.clocks = clocks }
        request.limit = limit
        let call = control.share.beginLease()
        do {
            if request.goesByFeedback { try await store.recordWaitingFeedback(tally: ServiceMetrics.reported) }
            let lease = try await store.lease(request)
            control.share.endLease(call, lease)
            position.withLock { $0 = Position(cursor: lease.cursor, storeAhead: lease.storeAhead, reading: clocks) }
            ServiceMetrics.suppressed(lease.suppressions)
            pacer?.leased(lease.deliveries.count)
            return lease
        } catch {
            control.share.endLease(call, nil)
            control.progress.tookLease(0)
            throw error
        }
    }

    /// Returns when to call again, or `nil` if a signal wakes this process as soon as there is something to do.
    private func wakeUp(_ due: Timestamp?) -> Timestamp? {
        if store.isShared {
            let look = clock.now() + Self.sharedLook
            return due.map { min($0, look) } ?? look
        }
        return due.map { min($0, clock.now() + (template.silentBudget == nil ? Self.sleepMax : Self.lookAgainAfter)) }
    }

    /// Returns whether nothing is left to lease, now or later. Reads the store, because ``RunProgress`` may have the
    /// counts and the end of the freeze from different moments.
    private func isDone() async throws -> Bool {
        guard let run = try await store.run(template.run) else { return true }
        control.progress.observed(run.counts)
        return run.isFrozen && run.counts.pending == 0 && run.counts.leased == 0
    }
}

/// Limits one run, over both its environments, to its campaign's `pace`. Paces shared by an app or all apps are kept in
/// the store, see ``SharedPace``.
package final class Pacer: Sendable {
    private let pace: Campaign.Pace
    /// The bucket. `nil` before the first request.
    private let bucket = Mutex<PaceBucket?>(nil)

    package init(_ pace: Campaign.Pace) {
        self.pace = pace
    }

    func allowance(at now: Duration, limit: Int) -> PaceBucket.Allowance {
        bucket.withLock { bucket in
            var filled = bucket ?? PaceBucket(pace, at: now)
            defer { bucket = filled }
            return filled.allowance(of: pace, at: now, limit: limit)
        }
    }

    func leased(_ count: Int) {
        bucket.withLock { $0?.consume(count) }
    }
}
