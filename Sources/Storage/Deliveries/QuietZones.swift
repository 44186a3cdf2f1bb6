import Model

/// What the quiet hours say at the moment of one lease, worked out once for each zone that comes up.
final class QuietZones {
    private let quiet: QuietTimes
    private let now: Timestamp
    private let expiresAt: Timestamp?
    private var known: [String?: LeaseDecision?] = [:]

    /// Nil without quiet hours.
    init?(_ request: LeaseRequest) {
        guard let quiet = request.quiet else { return nil }
        self.quiet = quiet
        now = request.now
        expiresAt = request.expiresAt
    }

    /// Nil: nobody sleeps there.
    func decision(forZone zone: String?) -> LeaseDecision? {
        if let decision = known[zone] { return decision }
        let decision = decide(quiet.answer(inZone: zone, at: now))
        known[zone] = .some(decision)
        return decision
    }

    private func decide(_ answer: QuietTimes.Answer) -> LeaseDecision? {
        switch answer {
        case .awake: nil
        case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
            .wait(until: end, for: .quietHours)
        case .quiet, .zoneUnknown: .suppress(.quietHours)
        }
    }
}
