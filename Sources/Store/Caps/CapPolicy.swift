package import Model

/// The facts about a lease that the frequency caps need.
package struct CapRequest: Hashable, Sendable {
    package var rule: CapRule
    /// A push that cannot be sent before this time is suppressed, because the campaign is late by then.
    package var latest: Expiry
    /// Whether the run's pushes have a collapse id. If so, all copies of the run for one device count as one push, and
    /// none of them holds back the next. Otherwise each copy counts.
    package var hasCollapseID: Bool

    package init(rule: CapRule, latest: Expiry, hasCollapseID: Bool = true) {
        self.rule = rule
        self.latest = latest
        self.hasCollapseID = hasCollapseID
    }

    /// Returns the person whose slots the push takes besides the device's; 0 if there is none.
    package func person(_ user: String?) -> Int64 {
        guard rule.asksForUser, let user, !user.isEmpty else { return 0 }
        return CapKey.person(topic: rule.topic, user: user)
    }

    /// Returns `nil` if no cap covers the campaign's class: then no cap is checked and no push is counted. Only pushes
    /// that show an alert are capped. Test runs are not capped. A correction is not capped, because it replaces a push
    /// that was counted.
    package init?(_ run: Run, caps: [FrequencyCap]) {
        guard !run.isTest else { return nil }
        self.init(run.definition, caps: caps)
    }

    /// Returns the same for a run that does not exist yet.
    package init?(_ definition: RunDefinition, caps: [FrequencyCap]) {
        let rule = CapRule(
            topic: definition.campaign.deviceTopic, pushClass: definition.campaign.pushClass, caps: caps)
        guard definition.campaign.pushType.showsAlert, definition.correction == nil, !rule.inForce.isEmpty
        else { return nil }
        let patience = max(definition.campaign.lateByMax, .milliseconds(1))
        self.init(
            rule: rule, latest: Expiry(plannedAt: definition.plannedAt, after: patience),
            hasCollapseID: definition.campaign.collapse.hasID)
    }
}

/// The caps of one class at one moment.
package struct CapPolicy {
    /// The interval after which the policy checks again whether a push in flight keeps its slot.
    private static let inFlightLookedAfter: Duration = .seconds(5)

    private let request: CapRequest
    private let windows: [(cap: FrequencyCap, window: RollingWindow)]
    /// For each rule in the ledger, by code: which of these caps count its pushes.
    private let counting: [UInt32: [Bool]]
    /// A push that ended at or before this moment counts for none of the app's caps.
    package let forgottenUpTo: Timestamp

    /// - Parameters:
    ///   - classes: the push class of each rule in the ledger, by code.
    ///   - gap: the time that the store knows nothing about, see ``RollingWindow``.
    package init(
        _ request: CapRequest, classes: [UInt32: String], at now: Timestamp, after steps: [ClockStep],
        gap: RestoreGap? = nil
    ) {
        self.request = request
        let caps = request.rule.inForce
        windows = caps.map { cap in
            let limit = cap.limit(for: request.rule.pushClass)
            let window = RollingWindow(
                limit: limit, length: cap.window, for: .frequencyCap, at: now, after: steps, gap: gap)
            return (cap, window)
        }
        counting = classes.mapValues { pushClass in caps.map { $0.covers(pushClass) } }
        forgottenUpTo =
            RollingWindow(
                limit: 1, length: request.rule.longestWindow, for: .frequencyCap, at: now, after: steps
            ).forgottenUpTo
    }

    /// Decides whether a push may be sent. A push must fit all caps that cover its class, so it waits for the last of
    /// their slots.
    ///
    /// - Parameter run: the run of the push; 0 for a run that has sent nothing yet.
    package func decide(
        _ usage: CapUsage, device: Int64, user: String?, run: Int64, wave: Timestamp?, expiresAt: Timestamp?
    ) -> LeaseDecision {
        let person = request.person(user)
        var longest = LeaseDecision.send(until: nil)
        for (index, entry) in windows.enumerated() {
            let pushes = usage.counted(device: device, person: person, entry.cap.per)
            if pushes.isEmpty, !entry.window.isFull(0) { continue }
            let end = [expiresAt, request.latest.moment(wave: wave)].compactMap(\.self).min()
            let others = pushes.filter { push in
                let isOwnCopy = request.hasCollapseID && push.run == run && push.device == device
                return !isOwnCopy && counting[push.rule]?[index] ?? true
            }
            let decision = Self.decide(entry.window, others, until: end)
            if decision.rank > longest.rank { longest = decision }
        }
        return longest
    }

    /// Decides by one window. A push in flight may turn out not to have been sent, so other pushes wait for its
    /// outcome. Such a wait ends in a suppression only when `end` has come.
    private static func decide(_ window: RollingWindow, _ pushes: [CapPush], until end: Timestamp?) -> LeaseDecision {
        let decision = window.decide(ends: pushes.alerts.map(\.settledAt), expiresAt: end)
        if case .send = decision { return decision }
        let settled = pushes.filter { $0.settledAt != nil }
        if settled.count == pushes.count { return decision }
        if let end, window.now >= end { return decision }
        let atBest = window.decide(ends: settled.alerts.map(\.settledAt), expiresAt: end)
        guard case .send = atBest else { return atBest }
        let look = window.now + inFlightLookedAfter
        return .wait(until: end.map { min($0, look) } ?? look, for: .frequencyCap)
    }
}

extension LeaseDecision {
    /// The rank of a decision: the longer it holds a push back, the higher.
    fileprivate var rank: Int64 {
        switch self {
        case .send: .min
        case .wait(let moment, _): moment.milliseconds
        case .suppress, .move: .max
        }
    }
}

/// The caps within the transaction of one lease: the decision for each delivery, and the slots of the deliveries that
/// are sent.
///
/// This is a class because every delivery reads and changes it, and copying its usage is expensive.
package final class CapLease {
    private let policy: CapPolicy
    private let request: CapRequest
    private let run: Int64
    /// The time at which its rows were locked.
    package let now: Timestamp
    package private(set) var usage: CapUsage

    package init(_ request: CapRequest, _ policy: CapPolicy, _ usage: CapUsage, run: Int64, at now: Timestamp) {
        self.policy = policy
        self.request = request
        self.usage = usage
        self.run = run
        self.now = now
    }

    package func decide(_ delivery: LeasedDelivery, user: String?, expiresAt: Timestamp?) -> LeaseDecision {
        policy.decide(
            usage, device: delivery.device, user: user, run: run, wave: delivery.wave, expiresAt: expiresAt)
    }

    package func reserve(_ delivery: LeasedDelivery, user: String?) {
        let push = CapPush(
            device: delivery.device, person: request.person(user), run: run, number: delivery.leaseNumber,
            rule: request.rule.code, hasCollapseID: request.hasCollapseID, reservedAt: now)
        usage.reserve(push, forgetting: policy.forgottenUpTo)
    }
}

/// A run that does not exist yet, for a forecast of its caps.
package struct CapPreview: Hashable, Sendable {
    package let request: CapRequest
    /// The time at which the run's pushes expire.
    package let expiry: Expiry
    /// The time at which the run would start, if it does not follow each device's clock.
    package let startsAt: Timestamp

    /// Returns `nil` if no cap covers the campaign's class.
    package init?(_ definition: RunDefinition, caps: [FrequencyCap], now: Timestamp) {
        guard let request = CapRequest(definition, caps: caps) else { return nil }
        self.request = request
        expiry = definition.expiry
        startsAt = max(now, definition.plannedAt)
    }
}
