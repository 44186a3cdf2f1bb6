package import Model

/// What becomes of a pending delivery that is looked at for sending.
package enum LeaseDecision: Hashable, Sendable {
    /// `until`: no request may start from then on; nil: whenever.
    case send(until: Timestamp?)
    /// Put off; if nothing else happens it would be suppressed for this cause. Nil: its wave has not started.
    case wait(until: Timestamp, for: SuppressionReason?)
    case suppress(SuppressionReason)
    /// Its device has registered in this environment since: a lease there takes it.
    case move(to: PushEnvironment)
}

/// What one lease may send, must put off or suppresses: asked once per pending delivery, in the transaction that then
/// writes the answer down.
///
/// In this order: the device's status, its environment, the expiry, the quiet hours, the frequency caps, the silent
/// budget, and for what would have to wait for its budget, whether a newer push of the same collapse key waits already.
/// What an earlier rule settles is not asked of the later ones, so the facts that cost a statement are passed as closures: an alert without caps never needs
/// them.
package struct LeasePolicy {
    /// Distinct zones remembered; above so many, devices report anything but zones.
    private static let zonesMax = 5_000

    private let environment: PushEnvironment
    private let reachable: Set<PushEnvironment>
    private let now: Timestamp
    private let expiry: Expiry?
    private let quiet: QuietTimes?
    private let window: RollingWindow?
    private var quietByZone: [String?: QuietTimes.State] = [:]

    /// - Parameters:
    ///   - steps: of the wall clock, see ``RollingWindow``.
    ///   - gap: what the store knows nothing of, as there.
    package init(_ request: LeaseRequest, after steps: [ClockStep] = [], gap: RestoreGap? = nil) {
        environment = request.environment
        reachable = request.reachable
        now = request.now
        expiry = request.expiry
        quiet = request.quiet
        window = request.silentBudget.map { RollingWindow($0, at: request.now, after: steps, gap: gap) }
    }

    /// - Parameters:
    ///   - status: the device's, as it is now; nil when it is no longer stored.
    ///   - current: the environment of the device's token now, to which alone it is sent.
    ///   - zone: the device's; asked for with quiet hours only.
    ///   - wave: when the delivery's wave starts; nil in a run without waves.
    ///   - silentEnds: of the device's background pushes, when the outcome came; nil for one in flight.
    ///   - newerWaits: whether a newer run's push of the same collapse key waits for the device's budget.
    ///   - capped: what the frequency caps say, given when the push expires.
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
        // Only its stage had kept it from waiting for its wave.
        if let wave, now < wave { return .wait(until: wave, for: nil) }
        let expiresAt = expiry?.moment(wave: wave)
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
        case .quiet, .zoneUnknown: .suppress(.quietHours)
        }
    }

    private mutating func state(_ quiet: QuietTimes, inZone zone: String?) -> QuietTimes.State {
        if let known = quietByZone[zone] { return known }
        let state = quiet.state(inZone: zone, at: now)
        if quietByZone.count < Self.zonesMax { quietByZone[zone] = state }
        return state
    }
}
