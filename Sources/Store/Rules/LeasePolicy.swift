package import Model

/// The decision about a pending delivery that is considered for sending.
package enum LeaseDecision: Hashable, Sendable {
    /// No request may start at `until` or later; `nil` if there is no such time.
    case send(until: Timestamp?)
    /// The delivery waits until this time, for this reason. The reason is `nil` if the delivery's wave has not
    /// started.
    case wait(until: Timestamp, for: SuppressionReason?)
    case suppress(SuppressionReason)
    /// The device has registered in this other environment since the freeze. A lease in that environment takes the
    /// delivery.
    case move(to: PushEnvironment)
}

/// The rule that decides which deliveries one lease sends, puts off or suppresses. It is evaluated once per pending
/// delivery, in the transaction that records the decision.
///
/// The order is: the device's status, its environment, its wave, the expiry, the quiet hours, the frequency caps, the
/// silent budget. A push that would wait for its budget is suppressed if a newer push of the same collapse key waits
/// already. If an earlier rule decides, the later ones are not evaluated. Facts that cost a database statement are
/// therefore passed as closures. An alert without caps never needs them.
package struct LeasePolicy {
    /// The maximum number of cached zones. There are fewer real zones, so further values are invalid.
    private static let zonesMax = 5_000

    private let environment: PushEnvironment
    private let reachable: Set<PushEnvironment>
    private let now: Timestamp
    private let expiry: Expiry?
    /// The time at which a push without a wave expires; `nil` if it does not expire.
    private let expiresAt: Timestamp?
    private let quiet: QuietTimes?
    private let window: RollingWindow?
    private var quietByZone: [String?: QuietTimes.State] = [:]

    /// - Parameters:
    ///   - steps: the steps of the wall clock, see ``RollingWindow``.
    ///   - gap: the time that the store knows nothing about, see ``RollingWindow``.
    package init(_ request: LeaseRequest, after steps: [ClockStep] = [], gap: RestoreGap? = nil) {
        environment = request.environment
        reachable = request.reachable
        now = request.now
        expiry = request.expiry
        expiresAt = request.expiry?.moment(wave: nil)
        quiet = request.quiet
        window = request.silentBudget.map { RollingWindow($0, at: request.now, after: steps, gap: gap) }
    }

    /// - Parameters:
    ///   - status: the device's present status; `nil` if the device is no longer stored.
    ///   - current: the environment of the device's present token. The device can be reached only there.
    ///   - zone: the device's zone; needed only with quiet hours.
    ///   - wave: when the delivery's wave starts; `nil` in a run without waves.
    ///   - silentEnds: the times of the outcomes of the device's background pushes; `nil` for a push in flight.
    ///   - newerWaits: whether a newer run's push of the same collapse key waits for the device's budget.
    ///   - capped: the decision of the frequency caps, from the time at which the push expires.
    package mutating func decide(
        status: DeviceStatus?, in current: PushEnvironment?, zone: String?, wave: Timestamp?,
        silentEnds: () throws -> [Timestamp?],
        newerWaits: () throws -> Bool, capped: (_ expiresAt: Timestamp?) -> LeaseDecision = { _ in .send(until: nil) }
    ) rethrows -> LeaseDecision {
        switch status {
        case nil, .gone: return .suppress(.tokenGone)
        case .suspended: return .suppress(.wrongEnvironment)
        case .active: break
        }
        if let current, current != environment {
            return reachable.contains(current) ? .move(to: current) : .suppress(.wrongEnvironment)
        }
        // The delivery was held for its stage, which has begun. It still waits for its wave.
        if let wave, now < wave { return .wait(until: wave, for: nil) }
        let expiresAt = wave == nil ? self.expiresAt : expiry?.moment(wave: wave)
        if let expiresAt, now >= expiresAt { return .suppress(.expired) }
        var until = expiresAt
        if let quiet {
            let decision = decide(quiet, zone: zone, expiresAt: expiresAt)
            guard case .send(let quietFrom) = decision else { return decision }
            until = [until, quietFrom].compactMap(\.self).min()
        }
        let cap = capped(expiresAt)
        guard case .send = cap else { return cap }
        guard let window else { return .send(until: until) }
        switch window.decide(ends: try silentEnds(), expiresAt: expiresAt) {
        case .send: return .send(until: until)
        case .wait where try newerWaits(): return .suppress(.coalesced)
        case let decision: return decision
        }
    }

    private mutating func decide(_ quiet: QuietTimes, zone: String?, expiresAt: Timestamp?) -> LeaseDecision {
        switch state(quiet, inZone: zone) {
        case .awake(let quietFrom): .send(until: quietFrom)
        case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
            .wait(until: end, for: .quietHours)
        case .quiet: .suppress(.quietHours)
        case .zoneUnknown: .suppress(.unknownZone)
        }
    }

    private mutating func state(_ quiet: QuietTimes, inZone zone: String?) -> QuietTimes.State {
        if let known = quietByZone[zone] { return known }
        let state = quiet.state(inZone: zone, at: now)
        if quietByZone.count < Self.zonesMax { quietByZone[zone] = state }
        return state
    }
}
