package import Model
import Store

/// Deliveries that start at the same time, with what the pace makes of them.
package struct Wave: Hashable, Sendable {
    /// Where the expected end comes from.
    package enum Basis: Hashable, Sendable {
        /// The campaign's own pace.
        case pace
        /// What the last finished run managed.
        case lastRun
    }

    package var startsAt: Timestamp
    package var devices: Int
    /// Their time zones, most devices first; empty in a run that does not follow each device's clock.
    package var zones: [String]
    /// Pushes per second at full speed; nil when nothing is known of it.
    package var rate: Double?
    package var basis: Basis?
    package var ramp: Duration?
    package var endsAt: Timestamp?
    /// Those whose turn would come only after `expires_after`.
    package var lateDevices: Int

    /// The run as one wave at its planned time, or as one for each moment at which somebody's turn comes, in order.
    static func all(
        _ definition: RunDefinition, _ reach: Reach, _ waves: RecipientWaves?, previous: PreviousRun?
    ) -> [Wave] {
        guard let waves else {
            return [Wave(definition, startsAt: definition.plannedAt, devices: reach.total, previous: previous)]
        }
        var turns: [Timestamp: (devices: Int, zones: [String])] = [:]
        for slice in reach.byZone {
            guard case .at(let moment) = waves.turn(inZone: slice.zone) else { continue }
            turns[moment, default: (0, [])].devices += slice.count
            turns[moment]?.zones.append(slice.zone ?? "no zone")
        }
        var isBusyUntil: Timestamp?
        return turns.sorted { $0.key < $1.key }.map { moment, turn in
            var wave = Wave(
                definition, startsAt: moment, devices: turn.devices, previous: previous, isBusyUntil: isBusyUntil)
            wave.zones = turn.zones
            isBusyUntil = wave.endsAt
            return wave
        }
    }

    /// - Parameter isBusyUntil: when the wave before will have been sent: the pace is the run's, not the wave's.
    private init(
        _ definition: RunDefinition, startsAt: Timestamp, devices: Int, previous: PreviousRun?,
        isBusyUntil: Timestamp? = nil
    ) {
        self.startsAt = startsAt
        self.devices = devices
        zones = []
        var pace = definition.campaign.pace ?? previous?.pushesPerSecond.map { Campaign.Pace(pushesPerSecond: $0) }
        rate = pace?.pushesPerSecond
        basis = pace.map { _ in definition.campaign.pace == nil ? .lastRun : .pace }
        // The ramp is that of the run's first pushes.
        if isBusyUntil != nil { pace?.ramp = nil }
        ramp = pace?.ramp
        let begin = max(startsAt, isBusyUntil ?? startsAt)
        endsAt = pace.map { begin + $0.duration(of: devices) }
        lateDevices = 0
        if basis == .pace, let pace, let expiresAt = definition.expiry.moment(wave: startsAt) {
            let inTime = expiresAt > begin ? pace.count(within: expiresAt - begin) : 0
            lateDevices = max(0, devices - Int(min(inTime, 1e15)))
        }
    }
}

extension PreviousRun {
    /// How fast it went; nil when it was too short to tell.
    var pushesPerSecond: Double? {
        guard let startedAt = run.startedAt, let finishedAt = run.finishedAt else { return nil }
        let seconds = (finishedAt - startedAt).inSeconds
        return seconds >= 1 && reach >= 100 ? Double(reach) / seconds : nil
    }
}

/// What the silent budget would do to a run of background pushes.
package struct SilentForecast: Hashable, Sendable {
    package var budget: Configuration.SilentBudget
    /// Devices that have had their share in the current window.
    package var usedUp: Int
    /// True when all of them get a slot before the run expires; otherwise some are suppressed.
    package var allCanWait: Bool

    init?(_ campaign: Campaign, _ budget: Configuration.SilentBudget?, usedUp: Int) {
        guard campaign.pushType == .background, let budget else { return nil }
        self.budget = budget
        self.usedUp = usedUp
        allCanWait = campaign.expiresAfter.map { $0 > budget.window } ?? true
    }
}

/// What the frequency caps would do to a run of alerts, by what devices and users have had.
package struct CappedForecast: Hashable, Sendable {
    /// Those that name the campaign's class.
    package var caps: [FrequencyCap]
    package var devices: Reach.CapSlice

    init?(_ preview: CapPreview?, _ reach: Reach) {
        guard let preview, let devices = reach.caps else { return nil }
        caps = preview.request.rule.inForce
        self.devices = devices
    }
}

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
