package import Model

/// What the quiet hours would do to the devices for which it is one of them when the run starts.
package struct QuietForecast: Hashable, Sendable {
    /// They get theirs when their quiet hours are over, the last of them at ``lastEnd``.
    package var waiting = 0
    package var lastEnd: Timestamp?
    /// They get nothing: the policy is `drop`, the run expires before, or nobody knows their zone.
    package var suppressed = 0

    /// Nil for a campaign without quiet hours.
    init?(_ definition: RunDefinition, _ reach: Reach, _ waves: RecipientWaves?) {
        guard let quiet = QuietTimes(definition.campaign.schedule) else { return nil }
        for slice in reach.byZone {
            let wave: Timestamp? = if case .at(let moment) = waves?.turn(inZone: slice.zone) { moment } else { nil }
            let expiresAt = definition.expiry.moment(wave: wave)
            switch quiet.state(inZone: slice.zone, at: wave ?? definition.plannedAt) {
            case .awake: break
            case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
                waiting += slice.count
                lastEnd = max(end, lastEnd ?? end)
            case .quiet, .zoneUnknown: suppressed += slice.count
            }
        }
    }
}
