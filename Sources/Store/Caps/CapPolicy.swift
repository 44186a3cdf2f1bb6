package import Model

/// What a lease asks of the frequency caps.
package struct CapRequest: Hashable, Sendable {
    package var rule: CapRule
    /// What could not leave before this is left out: the campaign is late by then.
    package var latest: Expiry
    /// Whether the run's pushes go with a collapse id. Its copies for one device count as one then, whatever their number,
    /// and none of them holds back the next; without one, each counts.
    package var hasCollapseID: Bool

    package init(rule: CapRule, latest: Expiry, hasCollapseID: Bool = true) {
        self.rule = rule
        self.latest = latest
        self.hasCollapseID = hasCollapseID
    }

    /// Whose slots it takes, beside the device's; 0: nobody's.
    package func person(_ user: String?) -> Int64 {
        guard rule.asksForUser, let user, !user.isEmpty else { return 0 }
        return CapKey.person(topic: rule.topic, user: user)
    }

    /// Nil when no cap names the campaign's class: then nothing is asked, and nothing counted. Only what somebody sees at
    /// once is capped, and a test is not; nor is a correction, which takes the place of what was counted.
    package init?(_ run: Run, caps: [FrequencyCap]) {
        guard !run.isTest else { return nil }
        self.init(run.definition, caps: caps)
    }

    /// Of a run that is not there yet.
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

/// Asks the caps of one class at one moment.
package struct CapPolicy {
    /// When it is looked again whether a push in flight keeps its slot.
    private static let inFlightLookedAfter: Duration = .seconds(5)

    private let request: CapRequest
    private let windows: [(cap: FrequencyCap, window: RollingWindow)]
    /// Of each rule in the ledger, by code, which of the caps here count its pushes.
    private let counting: [UInt32: [Bool]]
    /// What ended up to this counts for none of the app's caps.
    package let forgottenUpTo: Timestamp

    /// - Parameters:
    ///   - classes: of the rules that pushes in the ledger were decided by, by code.
    ///   - gap: what the store knows nothing of, see ``RollingWindow``.
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

    /// A push must fit all caps that name its class: it waits for the last of their slots.
    ///
    /// - Parameter run: that asks; 0: one that has sent nothing yet.
    package func decide(
        _ book: CapBook, device: Int64, user: String?, run: Int64, wave: Timestamp?, expiresAt: Timestamp?
    ) -> LeaseDecision {
        let person = request.person(user)
        var longest = LeaseDecision.send(until: nil)
        for (index, entry) in windows.enumerated() {
            let pushes = book.counted(device: device, person: person, entry.cap.per)
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

    /// A push in flight may yet turn out not to have left: it makes others wait, and only one whose end has come is left
    /// out for it.
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
    /// Whichever keeps a push longest.
    fileprivate var rank: Int64 {
        switch self {
        case .send: .min
        case .wait(let moment, _): moment.milliseconds
        case .suppress, .move: .max
        }
    }
}

/// The caps in the transaction of one lease: what they say of each delivery, and the slots of those that are sent.
///
/// A class, since it is asked and told for each delivery, and its book is no small thing to copy.
package final class CapLease {
    private let policy: CapPolicy
    private let request: CapRequest
    private let run: Int64
    /// When its rows were locked.
    package let now: Timestamp
    package private(set) var book: CapBook

    package init(_ request: CapRequest, _ policy: CapPolicy, _ book: CapBook, run: Int64, at now: Timestamp) {
        self.policy = policy
        self.request = request
        self.book = book
        self.run = run
        self.now = now
    }

    package func decide(_ delivery: LeasedDelivery, user: String?, expiresAt: Timestamp?) -> LeaseDecision {
        policy.decide(
            book, device: delivery.device, user: user, run: run, wave: delivery.wave, expiresAt: expiresAt)
    }

    package func reserve(_ delivery: LeasedDelivery, user: String?) {
        let push = CapPush(
            device: delivery.device, person: request.person(user), run: run, number: delivery.leaseNumber,
            rule: request.rule.code, hasCollapseID: request.hasCollapseID, reservedAt: now)
        book.reserve(push, forgetting: policy.forgottenUpTo)
    }
}

/// A run that is not there yet, and whose caps are asked about.
package struct CapPreview: Hashable, Sendable {
    package let request: CapRequest
    /// When what it sends expires.
    package let expiry: Expiry
    /// When it would start, where it does not follow each device's clock.
    package let startsAt: Timestamp

    /// Nil when no cap names the campaign's class.
    package init?(_ definition: RunDefinition, caps: [FrequencyCap], now: Timestamp) {
        guard let request = CapRequest(definition, caps: caps) else { return nil }
        self.request = request
        expiry = definition.expiry
        startsAt = max(now, definition.plannedAt)
    }
}
