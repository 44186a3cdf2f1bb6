package import Model

/// Who of an audience is sent to, which variant each gets, when its wave starts and which stage it is in: asked once per
/// device, by the freeze and by the plan that foretells it.
///
/// In this order: the holdout, the device's status and whether it shows alerts, the waves, the other devices of its user, the
/// stages. The holdout comes first, so that its members and those of each variant stay the same when devices are gone: both
/// are compared as they were assigned.
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

    /// Why a device is not sent to from the start; another device of its user may be.
    package static let reasons: [SuppressionReason] = [
        .tokenGone, .wrongEnvironment, .alertsNotAllowed, .holdout, .late, .unknownZone, .duplicateOfUser,
    ]

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
    /// Nil: each device gets its own copy.
    private var picks: UserPicks?

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
        picks = campaign.dedupe == .user ? UserPicks() : nil
    }

    /// For an audience without a campaign: everybody at once, without holdout and variants.
    package init(_ pushType: PushType) {
        self.pushType = pushType
        split = nil
        waves = nil
        sample = nil
        picks = nil
        lastStage = 0
    }

    /// Whether the device's language decides anything.
    package var hasStages: Bool { sample != nil }

    /// Whether it has to ``see(_:of:_:status:alertsAllowed:zone:seenAt:wasSent:)`` every device with a user first.
    package var goesByUser: Bool { picks != nil }

    /// To be told of each device in the audience that has a user, one user after the other, before anything is decided.
    ///
    /// - Parameters:
    ///   - seenAt: when the app was last heard of on it, in ms.
    ///   - wasSent: of a device that was decided on before a freeze was cut short: whether it was to be sent to.
    package mutating func see(
        _ device: Int64, of user: String, status: DeviceStatus, alertsAllowed: Bool, zone: () -> String?,
        seenAt: Int64, wasSent: Bool? = nil
    ) {
        let candidate = UserPicks.Candidate(
            stage: sample?.seedStage(of: device) ?? .max, seenAt: seenAt, device: device)
        if let wasSent {
            if wasSent { picks?.serve(user) } else { picks?.leaveOut(device) }
            return
        }
        let decision = decide(
            device: device, status: status, alertsAllowed: alertsAllowed, user: { user }, zone: zone)
        if decision.suppression == nil { picks?.offer(candidate, to: user) }
    }

    /// - Parameters:
    ///   - user: the device's; asked for in runs that go by users only.
    ///   - locale: the device's; asked for in runs with stages only.
    ///   - zone: the device's; asked for in runs with waves or stages only.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool,
        user: () -> String? = { nil }, locale: () -> String?, zone: () -> String?
    ) -> Decision {
        decide(
            device: device, environment, status: status, alertsAllowed: alertsAllowed, user: user,
            stratum: { StageSample.Stratum(locale: locale(), zone: zone()) }, zone: zone)
    }

    /// - Parameters:
    ///   - stratum: the device's language and zone; asked for in runs with stages only.
    ///   - zone: asked for in runs with waves only.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool,
        user: () -> String?, stratum: () -> StageSample.Stratum, zone: () -> String?
    ) -> Decision {
        var decision = decide(device: device, status: status, alertsAllowed: alertsAllowed, user: user, zone: zone)
        if decision.suppression == nil, picks?.isLeftOut(device) == true {
            decision = Decision(suppression: .duplicateOfUser, variant: decision.variant)
        }
        if decision.suppression == nil, let stage = sample?.stage(of: device, environment, stratum()) {
            decision.stage = stage
            decision.isRest = stage == lastStage
        }
        return decision
    }

    private mutating func decide(
        device: Int64, status: DeviceStatus, alertsAllowed: Bool, user: () -> String?, zone: () -> String?
    ) -> Decision {
        let number = goesByUser ? split?.number(of: device, user: user()) ?? device : device
        if let split, split.isHeldOut(number) { return Decision(suppression: .holdout) }
        if let reason = Self.suppression(status: status, alertsAllowed: alertsAllowed, pushType: pushType) {
            return Decision(suppression: reason, variant: split?.variant(of: number))
        }
        let variant = split?.variant(of: number)
        guard let waves else { return Decision(variant: variant) }
        switch turn(waves, inZone: zone()) {
        case .at(let moment): return Decision(variant: variant, wave: moment)
        case .never(let reason): return Decision(suppression: reason, variant: variant)
        }
    }

    /// One device chosen by hand: no holdout and no wave, and the variant asked for, if any.
    package func decideByHand(
        device: Int64, status: DeviceStatus, alertsAllowed: Bool, user: String? = nil, variant: Int?
    ) -> Decision {
        Decision(
            suppression: Self.suppression(status: status, alertsAllowed: alertsAllowed, pushType: pushType),
            variant: variant ?? split.flatMap { $0.variant(of: $0.number(of: device, user: user)) })
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

/// Which device of each user gets the one copy of a run with `dedupe: user`, of those that would be sent to: a seed before
/// the others, so that its stage is not empty, then the one that was seen last, then the one that was there first.
private struct UserPicks {
    struct Candidate {
        /// Of a seed; the highest number for the others.
        var stage: Int
        var seenAt: Int64
        var device: Int64

        func goes(before other: Candidate) -> Bool {
            (stage, -seenAt, device) < (other.stage, -other.seenAt, other.device)
        }
    }

    private var user: String?
    private var pick: Candidate?
    /// A freeze that was cut short has written a delivery for the user already.
    private var isServed = false
    /// One bit for a device, 64 neighbours together: a few bytes for each of millions.
    private var leftOut: [Int64: UInt64] = [:]

    mutating func offer(_ candidate: Candidate, to user: String) {
        turn(to: user)
        guard !isServed else { return leaveOut(candidate.device) }
        guard let pick else { return self.pick = candidate }
        let isBetter = candidate.goes(before: pick)
        leaveOut(isBetter ? pick.device : candidate.device)
        if isBetter { self.pick = candidate }
    }

    mutating func serve(_ user: String) {
        turn(to: user)
        if let pick { leaveOut(pick.device) }
        pick = nil
        isServed = true
    }

    func isLeftOut(_ device: Int64) -> Bool {
        leftOut[device >> 6].map { $0 & Self.bit(of: device) != 0 } ?? false
    }

    private mutating func turn(to user: String) {
        guard self.user != user else { return }
        self.user = user
        pick = nil
        isServed = false
    }

    mutating func leaveOut(_ device: Int64) { leftOut[device >> 6, default: 0] |= Self.bit(of: device) }

    private static func bit(of device: Int64) -> UInt64 { 1 << UInt64(device & 63) }
}

/// Which device of a user gets the one copy of a run with `dedupe: user` when the device that was chosen at the freeze
/// turns out to be gone: asked in the transaction that records this.
package struct UserFallback {
    /// The devices read for one user. A user with more devices has no fallback, so that the work is bounded.
    package static let devicesMax = 100

    /// A device of the user, with its delivery in the run.
    package struct Candidate: Sendable {
        package var device: Int64
        package var status: DeviceStatus
        package var alertsAllowed: Bool
        /// When the app was last heard of on it, in ms.
        package var seenAt: Int64
        /// `nil` if the run has no delivery to the device.
        package var state: DeliveryState?
        /// The status of APNs' answer, and the reason.
        package var answer: Int
        package var reason: String?

        package init(
            device: Int64, status: DeviceStatus, alertsAllowed: Bool, seenAt: Int64, state: DeliveryState?, answer: Int,
            reason: String?
        ) {
            self.device = device
            self.status = status
            self.alertsAllowed = alertsAllowed
            self.seenAt = seenAt
            self.state = state
            self.answer = answer
            self.reason = reason
        }

        /// Whether the delivery keeps the user from another copy: it was sent, is to be sent, or was refused for a
        /// reason that says nothing about the device.
        fileprivate var isServed: Bool {
            switch state {
            case nil: false
            case .pending, .accepted, .unknown: true
            case .rejected: answer != UserFallback.goneStatus
            case .suppressed: !FreezePolicy.reasons.contains { $0.rawValue == reason }
            }
        }
    }

    private static let goneStatus = 410

    private let run: Run

    /// `nil` if the run has no fallback: it is over, or a user's devices each get a copy.
    package init?(_ run: Run) {
        guard run.definition.campaign.dedupe == .user, !run.state.isFinal, !run.isTest else { return nil }
        self.run = run
    }

    /// Returns the best of the devices that were left out for another one, as at the freeze, or `nil` if there is none,
    /// or if the user has or had a copy.
    ///
    /// - Parameter devices: of one user, at most ``devicesMax`` and one more.
    package func next(of devices: [Candidate]) -> Int64? {
        guard devices.count <= Self.devicesMax, !devices.contains(where: \.isServed) else { return nil }
        let showsAlert = run.definition.campaign.pushType.showsAlert
        return devices.filter { device in
            device.state == .suppressed && device.reason == SuppressionReason.duplicateOfUser.rawValue
                && device.status == .active && (device.alertsAllowed || !showsAlert)
        }.min { ($1.seenAt, $0.device) < ($0.seenAt, $1.device) }?.device
    }

    /// When the copy may be sent, see ``NotBefore``: now, or with the last stage of a run that has stages.
    package func notBefore(at now: Timestamp) -> Int64 {
        let stages = run.definition.campaign.stages?.count ?? 1
        return stages > 1 ? NotBefore.held(stage: stages - 1) : now.milliseconds
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
