package import Model

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
    /// Pushes per second at full speed; nil when nothing is known of it.
    package var rate: Double?
    package var basis: Basis?
    package var ramp: Duration?
    package var endsAt: Timestamp?
    /// Those whose turn would come only after `expires_after`.
    package var lateDevices: Int

    /// The run as one wave at its planned time.
    init(_ definition: RunDefinition, devices: Int, previous: PreviousRun?) {
        startsAt = definition.plannedAt
        self.devices = devices
        let pace =
            definition.campaign.pace ?? previous?.pushesPerSecond.map { Campaign.Pace(pushesPerSecond: $0) }
        rate = pace?.pushesPerSecond
        basis = pace.map { _ in definition.campaign.pace == nil ? .lastRun : .pace }
        ramp = pace?.ramp
        endsAt = pace.map { definition.plannedAt + $0.duration(of: devices) }
        lateDevices = 0
        if basis == .pace, let pace, let expiresAt = definition.expiresAt {
            lateDevices = max(0, devices - Int(min(pace.count(within: expiresAt - definition.plannedAt), 1e15)))
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
