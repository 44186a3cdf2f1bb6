import Store
import Model

/// What the quiet hours say at the moment of one lease, worked out once for each zone that comes up.
final class QuietZones {
    private let quiet: QuietTimes
    private let now: Timestamp
    private var known: [String?: QuietTimes.Answer] = [:]

    /// Nil without quiet hours.
    init?(_ request: LeaseRequest) {
        guard let quiet = request.quiet else { return nil }
        self.quiet = quiet
        now = request.now
    }

    /// Nil: nobody sleeps there.
    func decision(forZone zone: String?, expiresAt: Timestamp?) -> LeaseDecision? {
        switch answer(inZone: zone) {
        case .awake: nil
        case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
            .wait(until: end, for: .quietHours)
        case .quiet, .zoneUnknown: .suppress(.quietHours)
        }
    }

    private func answer(inZone zone: String?) -> QuietTimes.Answer {
        if let answer = known[zone] { return answer }
        let answer = quiet.answer(inZone: zone, at: now)
        known[zone] = answer
        return answer
    }
}
