package import Model

/// The approval that a run needs before it can be created.
package struct ApprovalDemand: Hashable, Sendable {
    package var policy: ApprovalPolicy
    package var people: People
    package var request: ApprovalRequest
    /// The reason for an emergency start without signatures; `nil` if the start needs signatures.
    package var emergencyOverride: String?
    /// The contents of the audience's segments that went into the request's digest.
    package var segments: SegmentContents

    package init(
        policy: ApprovalPolicy, people: People, request: ApprovalRequest, emergencyOverride: String? = nil,
        segments: SegmentContents = SegmentContents()
    ) {
        self.segments = segments
        self.policy = policy
        self.people = people
        self.request = request
        self.emergencyOverride = emergencyOverride
    }

    /// Returns the evidence that is recorded with an approved run. Throws ``Unapproved``.
    ///
    /// - Parameter record: the latest record of this plan; `nil` if approval was never requested.
    package func evidence(_ record: ApprovalRecord?, now: Timestamp) throws -> ApprovalEvidence {
        func refuse(_ cause: Unapproved.Cause) -> Unapproved {
            Unapproved(
                campaign: request.campaign, plan: request.plan, reach: policy.reach, rule: policy.rule, cause: cause)
        }
        var policy = policy
        if let asked = record?.request {
            let authors = policy.authors.union(asked.authors.map(people.person))
            policy = ApprovalPolicy(rule: policy.rule, reach: policy.reach, authors: authors)
        }
        let signatures = record.flatMap { $0.request.state == .open || $0.request.state == .rejected ? $0 : nil }?
            .signatures
        if let emergencyOverride {
            return ApprovalEvidence(
                policy: policy, decidedAt: now, people: [:], signatures: [], emergencyOverride: emergencyOverride)
        }
        switch policy.decision(signatures ?? [], people, now: now) {
        case .rejected(let signature): throw refuse(.rejected(by: signature.name, reason: signature.reason))
        case .waits(let judged): throw refuse(.waits(judged))
        case .approved(let judged):
            return ApprovalEvidence(
                policy: policy, decidedAt: now,
                people: Dictionary(judged.map { ($0.signature.identity, $0.person) }) { first, _ in first },
                signatures: judged.map(\.signature), emergencyOverride: nil)
        }
    }
}

/// The grounds on which a run was allowed to start. They are stored, so that `verify` reaches the same result whatever
/// the configuration says later.
package struct ApprovalEvidence: Hashable, Sendable, Codable {
    package var policy: ApprovalPolicy
    package var decidedAt: Timestamp
    /// The person of each identity, from the configuration at that time.
    package var people: [String: String]
    package var signatures: [ApprovalSignature]
    package var emergencyOverride: String?

    /// The stored key of an emergency start keeps its old name, because existing stores have it.
    private enum CodingKeys: String, CodingKey {
        case policy, decidedAt, people, signatures
        case emergencyOverride = "brokenGlass"
    }

    package init(
        policy: ApprovalPolicy, decidedAt: Timestamp, people: [String: String], signatures: [ApprovalSignature],
        emergencyOverride: String?
    ) {
        self.policy = policy
        self.decidedAt = decidedAt
        self.people = people
        self.signatures = signatures
        self.emergencyOverride = emergencyOverride
    }

    /// The summary for the audit log, for instance `signed by anna, ben (looks right)`.
    package var summary: String {
        if let emergencyOverride { return EmergencyOverride.summary(emergencyOverride) }
        return "signed by "
            + signatures.map { $0.name + ($0.reason.map { " (\($0))" } ?? "") }.joined(separator: ", ")
    }
}

/// The check that each run that needed signatures had them when it was created.
package enum ApprovalCheck {
    package static let name = "approvals"
    package static let promise = "every run that needed approval had its signatures when it started"

    /// - Parameters:
    ///   - evidence: the evidence that is stored with the run.
    ///   - record: the signatures on record.
    package static func faults(run: Int64?, _ evidence: ApprovalEvidence, _ record: ApprovalRecord) -> [StoreFault] {
        guard evidence.emergencyOverride == nil else { return [] }
        var faults: [StoreFault] = []
        let people = People(
            Dictionary(grouping: evidence.people.keys) { evidence.people[$0] ?? $0 })
        switch evidence.policy.decision(evidence.signatures, people, now: evidence.decidedAt) {
        case .approved: break
        case .waits, .rejected: faults.append(StoreFault(run: run, "its signatures do not match the required ones"))
        }
        for signature in evidence.signatures where !record.signatures.contains(where: { $0.isSame(as: signature) }) {
            faults.append(StoreFault(run: run, "the signature of \(signature.name) is not recorded"))
        }
        if record.request.run != run { faults.append(StoreFault(run: run, "its approval does not name this run")) }
        return faults
    }
}

extension ApprovalSignature {
    fileprivate func isSame(as other: ApprovalSignature) -> Bool {
        identity == other.identity && signedAt == other.signedAt && reach == other.reach
    }
}

/// The error for a run that cannot be created because its plan is not approved.
package struct Unapproved: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Cause: Hashable, Sendable {
        case waits([ApprovalPolicy.Judged])
        case rejected(by: String, reason: String?)
        /// The reach exceeds this limit (`approvals.ceiling`). No signature lifts it.
        case ceiling(Int)
        /// The configuration does not let this person start a run without signatures.
        case mayNotOverride(person: String)
    }

    package var campaign: String
    package var plan: String
    package var reach: Int
    package var rule: ApprovalRules.Rule?
    package var cause: Cause
    /// Whether the plan is recorded, so that people can still sign it. If `false`, the refusal is final.
    package var mayWait = true
    /// The people who signed another plan of the same campaign and occurrence.
    package var signersOfOthers: [String] = []

    package init(campaign: String, plan: String, reach: Int, rule: ApprovalRules.Rule?, cause: Cause) {
        self.campaign = campaign
        self.plan = plan
        self.reach = reach
        self.rule = rule
        self.cause = cause
    }

    /// Whether the plan may still be approved.
    package var isWaiting: Bool { if case .waits = cause { true } else { false } }

    package var description: String {
        let reached = "campaign \(campaign) would reach \(reach.counted("device"))"
        switch cause {
        case .ceiling(let limit):
            return
                "\(reached), above approvals.ceiling (\(limit.grouped)), which nothing overrides; narrow the audience"
        case .mayNotOverride(let person):
            return "\(reached) and is not approved; approvals.break_glass does not let \(person) start it unapproved"
        case .rejected(let name, let reason):
            return
                "\(reached), and \(name) rejected plan \(plan)\(reason.map { ": \($0)" } ?? ""); change it, or request "
                + "approval again with `fanfare plan \(campaign) --for-approval`"
        case .waits(let judged):
            return "\(reached); " + waiting(judged)
        }
    }

    private var others: String {
        guard !signersOfOthers.isEmpty else { return "" }
        let names = signersOfOthers.joined(separator: ", ")
        return "; \(names) signed another plan of the run: its texts, values, segments or rules have changed since"
    }

    /// `its plan is for more than 100,000 devices and needs the signatures of 2 people, 1 of 2 signed (ben). …`.
    private func waiting(_ judged: [ApprovalPolicy.Judged]) -> String {
        guard let rule else { return "its plan is not approved" }
        let good = judged.filter { $0.fault == nil }.map(\.signature.name)
        let bad = judged.compactMap { entry in
            entry.fault.map { "; the signature of \(entry.signature.name) does not count: \($0.summary)" }
        }
        return "its plan is for more than \(rule.above.grouped) devices and needs \(rule.signers)"
            + ", \(good.count) of \(rule.needs) signed" + (good.isEmpty ? "" : " (\(good.joined(separator: ", ")))")
            + bad.joined() + others + ". Nothing is sent; "
            + (mayWait
                ? "the plan waits for approval: another person signs it on the Approvals page or with "
                    + "`fanfare approve \(plan)`; then run this again"
                : "a run for a feed item cannot wait for approval")
    }
}
