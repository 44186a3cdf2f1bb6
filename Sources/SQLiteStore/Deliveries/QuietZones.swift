import Store
import Model

/// What the quiet hours say at the moment of one lease, worked out once for each zone that comes up.
final class QuietZones {
    private let quiet: QuietTimes
    private let now: Timestamp
    private var known: [String?: QuietTimes.State] = [:]

    /// Nil without quiet hours.
    init?(_ request: LeaseRequest) {
        guard let quiet = request.quiet else { return nil }
        self.quiet = quiet
        now = request.now
    }

    /// Nil: nobody sleeps there.
    func decision(forZone zone: String?, expiresAt: Timestamp?) -> LeaseDecision? {
        switch state(inZone: zone) {
        case .awake: nil
        case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
            .wait(until: end, for: .quietHours)
        case .quiet, .zoneUnknown: .suppress(.quietHours)
        }
    }

    private func state(inZone zone: String?) -> QuietTimes.State {
        if let state = known[zone] { return state }
        let state = quiet.state(inZone: zone, at: now)
        known[zone] = state
        return state
    }
}
