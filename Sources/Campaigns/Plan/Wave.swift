package import Model
import Store

/// The deliveries that start at the same time, and the times that follow from the pace.
package struct Wave: Hashable, Sendable {
    /// The source of the rate from which the end is computed.
    package enum Basis: Hashable, Sendable {
        /// The campaign's own pace, or a slower one that the configuration sets for several runs together.
        case pace
        /// The speed of the last finished run.
        case lastRun
    }

    package var startsAt: Timestamp
    package var devices: Int
    /// The time zones of the devices, most devices first; empty in a run that does not follow each device's clock.
    package var zones: [String]
    /// The pushes per second at full speed; `nil` if unknown.
    package var rate: Double?
    package var basis: Basis?
    package var ramp: Duration?
    package var endsAt: Timestamp?
    /// The devices whose turn would come only after `expires_after`.
    package var lateDevices: Int

    /// Returns the run as one wave at its planned time, or as one wave for each moment at which devices have their
    /// turn, in order.
    ///
    /// - Parameter shared: the pace that the configuration sets for several runs together.
    static func all(
        _ definition: RunDefinition, _ reach: Reach, _ waves: RecipientWaves?, previous: PreviousRun?,
        sharing shared: Campaign.Pace?
    ) -> [Wave] {
        let pace = Campaign.Pace.slowest(definition.campaign.pace, shared)
        guard let waves else {
            return [
                Wave(definition, pace, startsAt: definition.plannedAt, devices: reach.total, previous: previous)
            ]
        }
        var turns: [Timestamp: (devices: Int, zones: [String])] = [:]
        for turn in reach.turns(waves) {
            turns[turn.startsAt, default: (0, [])].devices += turn.count
            turns[turn.startsAt]?.zones.append(turn.zone ?? "no zone")
        }
        var isBusyUntil: Timestamp?
        return turns.sorted { $0.key < $1.key }.map { moment, turn in
            var wave = Wave(
                definition, pace, startsAt: moment, devices: turn.devices, previous: previous, isBusyUntil: isBusyUntil)
            wave.zones = turn.zones
            isBusyUntil = wave.endsAt
            return wave
        }
    }

    /// - Parameter isBusyUntil: the expected end of the previous wave, because all waves share the run's pace.
    private init(
        _ definition: RunDefinition, _ limit: Campaign.Pace?, startsAt: Timestamp, devices: Int,
        previous: PreviousRun?, isBusyUntil: Timestamp? = nil
    ) {
        self.startsAt = startsAt
        self.devices = devices
        zones = []
        var pace = limit ?? previous?.pushesPerSecond.map { Campaign.Pace(pushesPerSecond: $0) }
        rate = pace?.pushesPerSecond
        basis = pace.map { _ in limit == nil ? .lastRun : .pace }
        // Only the first wave of the run has the ramp.
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

extension Reach {
    /// Returns the devices by zone and turn, in a run that follows each device's clock. Most devices first, among those
    /// with the same turn.
    func turns(_ waves: RecipientWaves) -> [Turn] {
        if let bestHour { return bestHour.turns }
        return byZone.compactMap { slice in
            guard case .at(let moment) = waves.turn(inZone: slice.zone) else { return nil }
            return Turn(startsAt: moment, zone: slice.zone, count: slice.count)
        }
    }
}

extension PreviousRun {
    /// The speed of the run; `nil` if the run was too short or too small to tell.
    var pushesPerSecond: Double? {
        guard let startedAt = run.startedAt, let finishedAt = run.finishedAt else { return nil }
        let seconds = (finishedAt - startedAt).inSeconds
        return seconds >= 1 && reach >= 100 ? Double(reach) / seconds : nil
    }
}

/// The expected effect of the silent budget on a run of background pushes.
package struct SilentForecast: Hashable, Sendable {
    package var budget: Configuration.SilentBudget
    /// The devices that have used up their budget in the current window.
    package var usedUp: Int
    /// Whether all of them get a slot before the run expires; otherwise some are suppressed.
    package var allCanWait: Bool

    init?(_ campaign: Campaign, _ budget: Configuration.SilentBudget?, usedUp: Int) {
        guard campaign.pushType == .background, let budget else { return nil }
        self.budget = budget
        self.usedUp = usedUp
        allCanWait = campaign.expiresAfter.map { $0 > budget.window } ?? true
    }
}

/// The expected effect of the frequency caps on a run of alerts, given the pushes that devices and users have had.
package struct CappedForecast: Hashable, Sendable {
    /// The caps that name the campaign's class.
    package var caps: [FrequencyCap]
    package var devices: Reach.CapSlice

    init?(_ preview: CapPreview?, _ reach: Reach) {
        guard let preview, let devices = reach.caps else { return nil }
        caps = preview.request.rule.inForce
        self.devices = devices
    }
}

/// The expected effect of the quiet hours on the devices that are in them when the run starts.
package struct QuietForecast: Hashable, Sendable {
    /// The devices that get their push after their quiet hours, the last of them at ``lastEnd``.
    package var waiting = 0
    package var lastEnd: Timestamp?
    /// The devices that get nothing: the policy is `drop`, or the push expires first.
    package var suppressed = 0
    /// The devices that get nothing because their zone is unknown, and the campaign leaves such devices out.
    package var unknownZone = 0

    /// Returns `nil` for a campaign without quiet hours.
    init?(_ definition: RunDefinition, _ reach: Reach, _ waves: RecipientWaves?) {
        guard let quiet = QuietTimes(definition.campaign.schedule) else { return nil }
        let slices: [(wave: Timestamp?, zone: String?, count: Int)] =
            waves.map { reach.turns($0).map { ($0.startsAt, $0.zone, $0.count) } }
            ?? reach.byZone.map { (nil, $0.zone, $0.count) }
        for slice in slices {
            let expiresAt = definition.expiry.moment(wave: slice.wave)
            switch quiet.state(inZone: slice.zone, at: slice.wave ?? definition.plannedAt) {
            case .awake: break
            case .quiet(let end) where quiet.policy == .defer && expiresAt.map { end < $0 } ?? true:
                waiting += slice.count
                lastEnd = max(end, lastEnd ?? end)
            case .quiet: suppressed += slice.count
            case .zoneUnknown: unknownZone += slice.count
            }
        }
    }
}
