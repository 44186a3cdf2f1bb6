package import Model

/// Who of an audience is sent to, which variant each gets, when its wave starts and which stage it is in: asked once per
/// device, by the freeze and by the plan that foretells it.
///
/// In this order: the device's status and whether it shows alerts, the holdout, the waves, the stages. Who would not be sent to
/// anyway is in no holdout: the holdout is to be compared with those sent to.
package struct FreezePolicy {
    package struct Decision: Hashable, Sendable {
        /// Nil: sent to.
        package var suppression: SuppressionReason?
        /// Index into the campaign's variants; nil without variants and for the holdout.
        package var variant: Int?
        /// When its wave starts; nil in a run without waves.
        package var wave: Timestamp?
        /// Index into the campaign's stages; nil without stages.
        package var stage: Int?
        /// Of the last stage, or of a run without stages: it is written down as of no stage.
        package var isRest = true

        /// Its place among those of a correction, as a moment that is over; nil: in the order of devices.
        package var turn: Timestamp?

        /// As stored: the last stage is nearly everybody.
        package var storedStage: Int? { isRest ? nil : stage }

        /// See ``NotBefore``; nil: at once.
        package func notBefore(at now: Timestamp) -> Int64? {
            if let turn { return turn.milliseconds }
            let wave = wave.flatMap { $0 > now ? $0.milliseconds : nil }
            guard let stage, !isRest || wave != nil else { return wave }
            return NotBefore.held(stage: stage)
        }
    }

    /// Distinct zones remembered; above so many, devices report anything but zones.
    private static let zonesMax = 5_000

    private let pushType: PushType
    /// Nil: no holdout and no variants.
    private let split: CampaignSplit?
    private let waves: RecipientWaves?
    private var turnsByZone: [String?: RecipientWaves.Turn] = [:]
    /// Nil: no stages.
    private var sample: StageSample?
    private let lastStage: Int

    /// - Parameters:
    ///   - waves: of a run that follows each device's clock.
    ///   - seeds: the devices of each stage that is for seeds.
    package init(_ campaign: Campaign, waves: RecipientWaves?, seeds: [Set<Int64>] = []) {
        sample = StageSample(campaign, seeds: seeds)
        lastStage = (campaign.stages?.count ?? 1) - 1
        pushType = campaign.pushType
        let split = CampaignSplit(campaign)
        self.split = split.isTrivial ? nil : split
        self.waves = waves
    }

    /// For an audience without a campaign: everybody at once, without holdout and variants.
    package init(_ pushType: PushType) {
        self.pushType = pushType
        split = nil
        waves = nil
        sample = nil
        lastStage = 0
    }

    /// Whether the device's language decides anything.
    package var hasStages: Bool { sample != nil }

    /// - Parameters:
    ///   - locale: the device's; asked for in runs with stages only.
    ///   - zone: the device's; asked for in runs with waves or stages only.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool, locale: () -> String?,
        zone: () -> String?
    ) -> Decision {
        var decision = decide(device: device, status: status, alertsAllowed: alertsAllowed, zone: zone)
        if decision.suppression == nil,
            let stage = sample?.stage(of: device, environment, locale: locale(), zone: zone())
        {
            decision.stage = stage
            decision.isRest = stage == lastStage
        }
        return decision
    }

    private mutating func decide(
        device: Int64, status: DeviceStatus, alertsAllowed: Bool, zone: () -> String?
    ) -> Decision {
        if let reason = Self.suppression(status: status, alertsAllowed: alertsAllowed, pushType: pushType) {
            return Decision(suppression: reason, variant: split?.variant(of: device))
        }
        if let split, split.isHeldOut(device) { return Decision(suppression: .holdout) }
        let variant = split?.variant(of: device)
        guard let waves else { return Decision(variant: variant) }
        switch turn(waves, inZone: zone()) {
        case .at(let moment): return Decision(variant: variant, wave: moment)
        case .never(let reason): return Decision(suppression: reason, variant: variant)
        }
    }

    /// One device chosen by hand: no holdout and no wave, and the variant asked for, if any.
    package func decideByHand(
        device: Int64, status: DeviceStatus, alertsAllowed: Bool, variant: Int?
    ) -> Decision {
        Decision(
            suppression: Self.suppression(status: status, alertsAllowed: alertsAllowed, pushType: pushType),
            variant: variant ?? split?.variant(of: device))
    }

    private static func suppression(
        status: DeviceStatus, alertsAllowed: Bool, pushType: PushType
    ) -> SuppressionReason? {
        switch status {
        case .gone: .tokenGone
        case .suspended: .wrongEnvironment
        case .active: alertsAllowed || !pushType.showsAlert ? nil : .alertsNotAllowed
        }
    }

    private mutating func turn(_ waves: RecipientWaves, inZone zone: String?) -> RecipientWaves.Turn {
        if let known = turnsByZone[zone] { return known }
        let turn = waves.turn(inZone: zone)
        if turnsByZone.count < Self.zonesMax { turnsByZone[zone] = turn }
        return turn
    }
}

/// The order of a correction: whoever got the wrong text last is told first.
package struct CorrectionTurns: Sendable {
    private let start: Timestamp
    private let plannedAt: Timestamp

    /// - Parameters:
    ///   - corrected: the run that is put right.
    ///   - plannedAt: of the correction.
    package init(_ corrected: Run, plannedAt: Timestamp) {
        start = corrected.startedAt ?? corrected.createdAt
        self.plannedAt = plannedAt
    }

    package func give(_ decision: inout FreezePolicy.Decision, settledAt: Timestamp?) {
        guard decision.suppression == nil, let settledAt else { return }
        decision.turn = NotBefore.newestFirst(settledAt: settledAt, since: start, plannedAt: plannedAt)
    }
}
