package import Model

/// What becomes of a pending delivery that is looked at for sending.
package enum LeaseDecision: Hashable, Sendable {
    case send
    /// Put off; if nothing else happens it would be suppressed for this cause.
    case wait(until: Timestamp, for: SuppressionReason)
    case suppress(SuppressionReason)
}

/// What one lease may send, must put off or suppresses: asked once per pending delivery, in the transaction that then
/// writes the answer down.
///
/// In this order: the device's status, the expiry, the quiet hours, the silent budget, and for what would have to wait for
/// its budget, whether a newer push of the same collapse key waits already. What an earlier rule settles is not asked of
/// the later ones, so the two facts that cost a statement are passed as closures: an alert never needs them.
package struct LeasePolicy {
    /// Distinct zones remembered; above so many, devices report anything but zones.
    private static let zonesMax = 5_000

    private let now: Timestamp
    private let expiry: Expiry?
    private let quiet: QuietTimes?
    private let window: SilentWindow?
    private var quietByZone: [String?: QuietTimes.State] = [:]

    package init(_ request: LeaseRequest) {
        now = request.now
        expiry = request.expiry
        quiet = request.quiet
        window = request.silentBudget.map { SilentWindow($0, at: request.now) }
    }

    /// - Parameters:
    ///   - status: the device's, as it is now; nil when it is no longer stored.
    ///   - zone: the device's; asked for with quiet hours only.
    ///   - wave: when the delivery's wave starts; nil in a run without waves.
    ///   - silentEnds: of the device's background pushes, when the outcome came; nil for one in flight.
    ///   - newerWaits: whether a newer run's push of the same collapse key waits for the device's budget.
    package mutating func decide(
        status: DeviceStatus?, zone: String?, wave: Timestamp?, silentEnds: () throws -> [Timestamp?],
        newerWaits: () throws -> Bool
    ) rethrows -> LeaseDecision {
        switch status {
        case nil, .gone: return .suppress(.tokenGone)
        case .suspended: return .suppress(.wrongEnvironment)
        case .active: break
        }
        let expiresAt = expiry?.moment(wave: wave)
        if let expiresAt, now >= expiresAt { return .suppress(.expired) }
        if let quiet, let decision = decide(quiet, zone: zone, expiresAt: expiresAt) { return decision }
        guard let window else { return .send }
        let decision = window.decide(ends: try silentEnds(), expiresAt: expiresAt)
        guard case .wait = decision else { return decision }
        return try newerWaits() ? .suppress(.coalesced) : decision
    }

    /// Nil: it is not quiet there.
    private mutating func decide(_ quiet: QuietTimes, zone: String?, expiresAt: Timestamp?) -> LeaseDecision? {
        switch state(quiet, inZone: zone) {
        case .awake: nil
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

/// The arithmetic of the silent budget at one moment: which background pushes count, and whether one more may leave.
///
/// A push left counts at APNs at some moment between its reservation and its outcome. Counting each by the later end,
/// no window of that length seen from APNs can hold more than the limit, whichever moments they were.
package struct SilentWindow: Hashable, Sendable {
    package let budget: Configuration.SilentBudget
    package let now: Timestamp

    package init(_ budget: Configuration.SilentBudget, at now: Timestamp) {
        self.budget = budget
        self.now = now
    }

    /// A push counts while its outcome came after this moment, or has not come yet.
    package var opensAt: Timestamp { now - budget.window }

    /// A push whose outcome came up to this moment can be forgotten: it counts neither now nor for a look back at any
    /// push that still counts.
    package var forgottenUpTo: Timestamp { opensAt - budget.window }

    /// - Parameter end: when the outcome came; nil while in flight, which may go on.
    package func counts(_ end: Timestamp?) -> Bool { end.map { $0 > opensAt } ?? true }

    /// Whether so many pushes that count leave no slot.
    package func isFull(_ count: Int) -> Bool { count >= budget.limit }

    /// Whether one more background push may leave now, when it may, or that it never will before it expires.
    ///
    /// - Parameter ends: of the device's pushes, when the outcome came; nil while in flight.
    package func decide(ends: [Timestamp?], expiresAt: Timestamp?) -> LeaseDecision {
        let counted = ends.filter(counts).map { $0 ?? now }.sorted()
        guard isFull(counted.count) else { return .send }
        guard budget.limit > 0 else { return .suppress(.silentBudget) }
        // A slot is free once all but limit - 1 of them have left the window.
        let free = counted[counted.count - budget.limit] + budget.window
        if let expiresAt, free >= expiresAt { return .suppress(.silentBudget) }
        return .wait(until: free, for: .silentBudget)
    }
}
