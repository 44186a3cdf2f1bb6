package import Model

/// The rule that decides which devices of an audience are sent to, with their variant, the start of their wave, and
/// their stage. The freeze, and the plan that predicts it, evaluate the rule once per device.
///
/// The order is: the holdout, the device's status and whether it shows alerts, the waves, the other devices of its
/// user, the stages. The holdout comes first, so that the members of the holdout and of each variant do not depend on
/// which devices are gone. Reports compare these groups as they were assigned.
package struct FreezePolicy {
    package struct Decision: Hashable, Sendable {
        /// `nil` if the device is sent to.
        package var suppression: SuppressionReason?
        /// Index into the campaign's variants; `nil` without variants, for the holdout, and for a device whose variant
        /// an earlier stage decides.
        package var variant: Int?
        /// When its wave starts, or would start if the device were sent to: events of both are counted from there.
        /// `nil` in a run without waves.
        package var wave: Timestamp?
        /// Index into the campaign's stages; `nil` without stages.
        package var stage: Int?
        /// Whether the device is in the last stage, or the run has no stages. No stage is stored for such a device.
        package var isRest = true

        /// The device's place in a correction, as a moment before the planned time. `nil` if the run sends in order of
        /// device.
        package var turn: Timestamp?

        /// The stage as stored; `nil` for the last stage, which holds nearly all devices.
        package var storedStage: Int? { isRest ? nil : stage }

        /// Returns when the delivery may be sent, see ``NotBefore``; `nil` if it may be sent immediately.
        package func notBefore(at now: Timestamp) -> Int64? {
            if let turn { return turn.milliseconds }
            guard suppression == nil else { return nil }
            let wave = wave.flatMap { $0 > now ? $0.milliseconds : nil }
            guard let stage, !isRest || wave != nil else { return wave }
            return NotBefore.held(stage: stage)
        }
    }

    /// The reasons why a device is not sent to from the start. Another device of its user may be sent to.
    package static let reasons: [SuppressionReason] = [
        .tokenGone, .wrongEnvironment, .alertsNotAllowed, .holdout, .late, .unknownZone, .duplicateOfUser,
    ]

    /// The maximum number of cached zones. There are fewer real zones, so further values are invalid.
    private static let zonesMax = 5_000

    private let pushType: PushType
    /// `nil` if there is no holdout and no variant.
    private let split: CampaignSplit?
    private let waves: RecipientWaves?
    /// The rule of a run with `best_hour`; `nil` for any other run.
    package var bestHour: BestHourPolicy?
    /// The opens of the next device to decide about, as quarters of an hour since 1970. Empty in a run without
    /// `best_hour`.
    package var opens: [Int64] = []
    private var turnsByZone: [String?: RecipientWaves.Turn] = [:]
    /// `nil` if there are no stages.
    private var sample: StageSample?
    private let lastStage: Int
    /// Whether a stage decides which variant the last stage gets.
    private let decidesVariant: Bool
    /// `nil` if each device gets its own copy.
    private var picks: UserPicks?

    /// - Parameters:
    ///   - waves: the waves of a run that follows each device's clock.
    ///   - seeds: the devices of each seed stage.
    package init(_ campaign: Campaign, waves: RecipientWaves?, seeds: [Set<Int64>] = []) {
        sample = StageSample(campaign, seeds: seeds)
        lastStage = (campaign.stages?.count ?? 1) - 1
        decidesVariant = campaign.decidingStage != nil
        pushType = campaign.pushType
        let split = CampaignSplit(campaign)
        self.split = split.isTrivial ? nil : split
        self.waves = waves
        picks = campaign.dedupe == .user ? UserPicks() : nil
    }

    /// Creates a rule for an audience without a campaign. It has no holdout, variants, waves or stages.
    package init(_ pushType: PushType) {
        self.pushType = pushType
        split = nil
        waves = nil
        sample = nil
        picks = nil
        lastStage = 0
        decidesVariant = false
    }

    /// Whether the run has stages, so that the device's language matters.
    package var hasStages: Bool { sample != nil }

    /// Whether ``see(_:of:_:status:alertsAllowed:zone:seenAt:wasSent:)`` must first be called for every device that
    /// has a user.
    package var goesByUser: Bool { picks != nil }

    /// Records a device of the audience that has a user. Call it for all of these devices, one user after the other,
    /// before the first decision. It assumes that each device has its turn at the app's hour, if there is a best hour.
    ///
    /// - Parameters:
    ///   - seenAt: when the app was last seen on the device, in ms.
    ///   - wasSent: whether an interrupted freeze had decided to send to the device; `nil` if it had not decided.
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
    ///   - user: the device's user; called only in runs that go by users.
    ///   - locale: the device's locale; called only in runs with stages.
    ///   - zone: the device's zone; called only in runs with waves or stages.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool,
        user: () -> String? = { nil }, locale: () -> String?, zone: () -> String?
    ) -> Decision {
        decide(
            device: device, environment, status: status, alertsAllowed: alertsAllowed, user: user,
            stratum: { StageSample.Stratum(locale: locale(), zone: zone()) }, zone: zone)
    }

    /// - Parameters:
    ///   - stratum: the device's language and zone; called only in runs with stages.
    ///   - zone: the device's zone; called only in runs with waves.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool,
        user: () -> String?, stratum: () -> StageSample.Stratum, zone: () -> String?
    ) -> Decision {
        var decision = decide(device: device, status: status, alertsAllowed: alertsAllowed, user: user, zone: zone)
        if decision.suppression == nil, picks?.isLeftOut(device) == true {
            decision = Decision(suppression: .duplicateOfUser, variant: decision.variant, wave: decision.wave)
        }
        if decision.suppression == nil, let stage = sample?.stage(of: device, environment, stratum()) {
            decision.stage = stage
            decision.isRest = stage == lastStage
            // The variant is written when the delivery is leased.
            if decidesVariant, decision.isRest { decision.variant = nil }
        }
        return decision
    }

    private mutating func decide(
        device: Int64, status: DeviceStatus, alertsAllowed: Bool, user: () -> String?, zone: () -> String?
    ) -> Decision {
        let number = goesByUser ? split?.number(of: device, user: user()) ?? device : device
        let (never, wave) = turn(of: number, zone)
        if let split, split.isHeldOut(number) { return Decision(suppression: .holdout, wave: wave) }
        let reason = Self.suppression(status: status, alertsAllowed: alertsAllowed, pushType: pushType) ?? never
        return Decision(suppression: reason, variant: split?.variant(of: number), wave: wave)
    }

    /// Returns when the wave of a device starts, or why it has none; `nil` twice in a run without waves.
    private mutating func turn(of number: Int64, _ zone: () -> String?) -> (never: SuppressionReason?, wave: Timestamp?)
    {
        guard let waves else { return (nil, nil) }
        switch bestHour?.turn(of: number, opens: opens, inZone: zone()) ?? turn(waves, inZone: zone()) {
        case .at(let moment): return (nil, moment)
        case .never(let reason): return (reason, nil)
        }
    }

    /// Decides on one device that a person chose: without holdout and waves, with the requested variant, if any.
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

/// Chooses the one device of each user that gets a copy in a run with `dedupe: user`. Only devices that the other
/// rules allow are considered. A device of a seed stage is preferred, so that its stage is not empty. Otherwise the
/// device that was seen last is chosen; among equals, the one with the lowest id.
private struct UserPicks {
    struct Candidate {
        /// The index of the device's seed stage; `.max` for a device that is not a seed.
        var stage: Int
        var seenAt: Int64
        var device: Int64

        func goes(before other: Candidate) -> Bool {
            (stage, -seenAt, device) < (other.stage, -other.seenAt, other.device)
        }
    }

    private var user: String?
    private var pick: Candidate?
    /// Whether an interrupted freeze has already chosen a device of the user.
    private var isServed = false
    /// The devices that were left out, as one bit each. A word holds the bits of 64 neighbouring ids, to save memory.
    private var leftOut: [Int64: UInt64] = [:]

    mutating func offer(_ candidate: Candidate, to user: String) {
        begin(user)
        guard !isServed else { return leaveOut(candidate.device) }
        guard let pick else { return self.pick = candidate }
        let isBetter = candidate.goes(before: pick)
        leaveOut(isBetter ? pick.device : candidate.device)
        if isBetter { self.pick = candidate }
    }

    mutating func serve(_ user: String) {
        begin(user)
        if let pick { leaveOut(pick.device) }
        pick = nil
        isServed = true
    }

    func isLeftOut(_ device: Int64) -> Bool {
        leftOut[device >> 6].map { $0 & Self.bit(of: device) != 0 } ?? false
    }

    private mutating func begin(_ user: String) {
        guard self.user != user else { return }
        self.user = user
        pick = nil
        isServed = false
    }

    mutating func leaveOut(_ device: Int64) { leftOut[device >> 6, default: 0] |= Self.bit(of: device) }

    private static func bit(of device: Int64) -> UInt64 { 1 << UInt64(device & 63) }
}

/// Chooses another device of a user in a run with `dedupe: user`, if the device that was chosen at the freeze turns
/// out to be gone. It is evaluated in the transaction that records the gone device.
package struct UserFallback {
    /// The maximum number of devices that are read for one user. A user with more devices has no fallback, so that the
    /// work is bounded.
    package static let devicesMax = 100

    /// A device of the user, with its delivery in the run.
    package struct Candidate: Sendable {
        package var device: Int64
        package var status: DeviceStatus
        package var alertsAllowed: Bool
        /// When the app was last seen on the device, in ms.
        package var seenAt: Int64
        /// `nil` if the run has no delivery to the device.
        package var state: DeliveryState?
        /// The HTTP status of APNs' response. ``reason`` is the reason of that response or of the suppression.
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

        /// Whether the delivery keeps the user from another copy. It does if it was sent, is to be sent, or was refused
        /// for a reason that says nothing about the device.
        fileprivate var isServed: Bool {
            switch state {
            case nil: false
            case .pending, .accepted, .unknown: true
            case .rejected: answer != UserFallback.goneStatus
            case .suppressed: !FreezePolicy.reasons.contains { $0.rawValue == reason }
            }
        }
    }

    /// The status of APNs' response for a device that is gone.
    package static let goneStatus = 410

    private let run: Run

    /// Returns `nil` if the run has no fallback: it is over, it is a test, or each device of a user gets a copy.
    package init?(_ run: Run) {
        guard run.definition.campaign.dedupe == .user, !run.state.isFinal, !run.isTest else { return nil }
        self.run = run
    }

    /// Returns the device that was seen last among those that were left out as duplicates; among equals, the one with
    /// the lowest id. Returns `nil` if there is none, or if the user has or had a copy.
    ///
    /// - Parameter devices: the devices of one user, at most ``devicesMax`` and one more.
    package func next(of devices: [Candidate]) -> Int64? {
        guard devices.count <= Self.devicesMax, !devices.contains(where: \.isServed) else { return nil }
        let showsAlert = run.definition.campaign.pushType.showsAlert
        return devices.filter { device in
            device.state == .suppressed && device.reason == SuppressionReason.duplicateOfUser.rawValue
                && device.status == .active && (device.alertsAllowed || !showsAlert)
        }.min { ($1.seenAt, $0.device) < ($0.seenAt, $1.device) }?.device
    }

    /// Returns when the copy may be sent, see ``NotBefore``: now, or with the last stage of a run that has stages.
    package func notBefore(at now: Timestamp) -> Int64 {
        let stages = run.definition.campaign.stages?.count ?? 1
        return stages > 1 ? NotBefore.held(stage: stages - 1) : now.milliseconds
    }
}

/// The order of a correction: the device that got the wrong text last is corrected first.
package struct CorrectionSequence: Sendable {
    private let start: Timestamp
    private let plannedAt: Timestamp

    /// - Parameters:
    ///   - corrected: the run that is corrected.
    ///   - plannedAt: the planned time of the correction.
    package init(_ corrected: Run, plannedAt: Timestamp) {
        start = corrected.startedAt ?? corrected.createdAt
        self.plannedAt = plannedAt
    }

    package func schedule(_ decision: inout FreezePolicy.Decision, settledAt: Timestamp?) {
        guard decision.suppression == nil, let settledAt else { return }
        decision.turn = NotBefore.newestFirst(settledAt: settledAt, since: start, plannedAt: plannedAt)
    }
}
