/// The approvals that the configuration requires before a run that reaches many devices may start. See `approvals` and
/// `people` in `fanfare.yaml`.
package struct ApprovalRules: Hashable, Sendable {
    /// The number of people who must sign the plan of a run above some reach.
    package struct Rule: Hashable, Sendable, Codable {
        /// A run that reaches more devices than this needs the signatures.
        package var above: Int
        /// The number of different people who must sign.
        package var needs: Int
        package var notByAuthor: Bool
        /// The lifetime of a signature.
        package var within: Duration
        /// The tolerated change of the reach since a signature, up or down, in percent.
        package var driftPercent: Double

        package init(
            above: Int, needs: Int, notByAuthor: Bool = true, within: Duration = .seconds(86_400),
            driftPercent: Double = 5
        ) {
            self.above = above
            self.needs = needs
            self.notByAuthor = notByAuthor
            self.within = within
            self.driftPercent = driftPercent
        }

        /// Returns the largest reach that a signature for this reach covers.
        package func most(signedFor reach: Int) -> Int { reach + Int(Double(reach) * driftPercent / 100) }
    }

    /// The folders with campaigns and templates.
    package struct Files: Hashable, Sendable {
        package var campaigns: String
        package var templates: String
        /// The feedback of campaigns whose file does not say, see ``Configuration/usualFeedback``.
        package var usualFeedback: [String: CampaignFeedback]

        package init(campaigns: String, templates: String, usualFeedback: [String: CampaignFeedback] = [:]) {
            self.campaigns = campaigns
            self.templates = templates
            self.usualFeedback = usualFeedback
        }
    }

    package var rules: [Rule]
    /// The largest reach of any run, with or without signatures. `nil` for no limit.
    package var ceiling: Int?
    /// Whether a run may start without its signatures, for a recorded reason.
    package var breakGlass: Bool
    /// The people who may start a run without its signatures. Everyone may if this is empty.
    package var breakGlassBy: [String]
    package var people: ConfiguredPeople
    /// The folders of campaigns and templates, for finding out their authors. `nil` if authors are not determined.
    package var files: Files?

    package init(
        rules: [Rule], ceiling: Int? = nil, breakGlass: Bool = false, breakGlassBy: [String] = [],
        people: ConfiguredPeople = ConfiguredPeople()
    ) {
        self.rules = rules
        self.ceiling = ceiling
        self.breakGlass = breakGlass
        self.breakGlassBy = breakGlassBy
        self.people = people
    }

    /// Returns the rule for a run of this reach, or `nil` if it needs no signatures. If several rules apply, the
    /// result combines the strictest part of each. Its ``Rule/above`` is the largest one of these rules.
    package func rule(forReach reach: Int) -> Rule? {
        let applying = rules.filter { reach > $0.above }
        guard var strictest = applying.first else { return nil }
        for rule in applying.dropFirst() {
            strictest.above = max(strictest.above, rule.above)
            strictest.needs = max(strictest.needs, rule.needs)
            strictest.notByAuthor = strictest.notByAuthor || rule.notByAuthor
            strictest.within = min(strictest.within, rule.within)
            strictest.driftPercent = min(strictest.driftPercent, rule.driftPercent)
        }
        return strictest
    }
}

extension ApprovalRules {
    /// Returns the largest reach that a run of this reach may grow to before another rule or the ceiling applies; `nil`
    /// for no limit. Its signatures may cover less, see ``Rule/most(signedFor:)``.
    ///
    /// - Parameter isPassedOver: whether the run starts without its signatures. The ceiling applies in both cases.
    package func most(forReach reach: Int, isPassedOver: Bool) -> Int? {
        guard !isPassedOver else { return ceiling }
        let next = rules.map(\.above).filter { $0 >= reach }.min()
        return [next, ceiling].compactMap(\.self).min()
    }
}

extension Actor {
    /// The actor's account, prefixed by its source: `os:anna` of the operating system, `token:anna-mac` of an access
    /// token, `proxy:anna` of a proxy that signs people in.
    package var identity: String {
        if let signedInAs { return signedInAs }
        return switch authentication {
        case .account(_, let user): "os:\(user)"
        case .none: "name:\(name)"
        }
    }

    /// The uid of the account in ``identity``; `nil` if the identity is not an account of the operating system.
    package var identityUID: Int64? {
        if signedInAs != nil { return signedInUID }
        guard case .account(let uid, _) = authentication else { return nil }
        return uid
    }
}

/// A plan that waits, or has waited, for signatures.
package struct ApprovalRequest: Hashable, Sendable {
    /// The state of a request. Every state except ``open`` is final.
    package enum State: String, Hashable, Sendable, CaseIterable {
        /// Accepts signatures. The next state is one of the others.
        case open
        /// A run was started with the request. The request permits no second run.
        case used
        /// A person rejected the plan.
        case rejected
        /// The plan of the same occurrence has changed.
        case replaced
        /// The plan's occurrence is over and was not sent, or the signatures could no longer count.
        case lapsed
        /// The person who asked for it withdrew it.
        case withdrawn
    }

    package var id: Int64
    package var campaign: String
    package var topic: String
    /// The occurrence of the campaign's schedule. Empty for a run that a person starts.
    package var occurrence: String
    /// The plan's identifier, as `fanfare plan` prints it.
    package var plan: String
    /// The SHA-256 of everything that is signed, in hex.
    package var digest: String
    /// The reach when it was last counted.
    package var reach: Int
    package var needs: Int
    /// The identities of the authors of the campaign's content, and of the person who requested approval.
    package var authors: [String]
    package var askedBy: String
    package var askedAt: Timestamp
    package var state: State
    package var run: Int64?
    /// What the person who asked tells the approvers; `nil` if nothing.
    package var note: String?
    package var definition: RunDefinition

    package init(
        id: Int64 = 0, definition: RunDefinition, occurrence: String, plan: String, digest: String, reach: Int,
        needs: Int, authors: [String], askedBy: String, askedAt: Timestamp, state: State = .open, run: Int64? = nil,
        note: String? = nil
    ) {
        self.note = note
        self.id = id
        campaign = definition.campaign.name
        topic = definition.campaign.topic
        self.occurrence = occurrence
        self.plan = plan
        self.digest = digest
        self.reach = reach
        self.needs = needs
        self.authors = authors
        self.askedBy = askedBy
        self.askedAt = askedAt
        self.state = state
        self.run = run
        self.definition = definition
    }
}

extension ApprovalRequest {
    /// A summary of the request for the audit, with its note.
    package var requestSummary: String { summary + (note.map { ": \($0)" } ?? "") }

    /// A summary for the audit: `new-podcast 2026-12-01T09:00, plan p1-…`.
    package var summary: String { "\(campaign)\(occurrence.isEmpty ? "" : " \(occurrence)"), plan \(plan)" }

    /// Describes a signature for the audit: the plan, the reason, and the signer if another actor submitted the
    /// signature.
    package func summary(of signature: ApprovalSignature, by actor: Actor) -> String {
        summary + (signature.reason.map { ": \($0)" } ?? "")
            + (signature.identity == actor.identity
                ? "" : "; signature of \(signature.name), submitted by \(actor.name)")
    }

    /// Updates the request from a new count of the same plan.
    package mutating func merge(_ other: ApprovalRequest) {
        plan = other.plan
        reach = other.reach
        needs = other.needs
        // A note stands under the name of the person who asked, so no other person changes it.
        if other.askedBy == askedBy { note = other.note ?? note }
        // A repeated request does not make the requester an author.
        authors = Set(authors + other.authors.filter { $0 != other.askedBy }).sorted()
    }
}

/// A person's signature on a plan, or rejection of it.
package struct ApprovalSignature: Hashable, Sendable, Codable {
    /// The account, see ``Actor/identity``.
    package var identity: String
    /// The signer's name, for display.
    package var name: String
    package var signedAt: Timestamp
    /// The latest clock time that the store has recorded since the signature. It is never before ``signedAt``.
    package var seenAt: Timestamp
    /// The reach when the plan was signed.
    package var reach: Int
    package var isRejection: Bool
    package var reason: String?
    /// The uid of an operating system account; `nil` for an account of another kind.
    package var uid: Int64?
    /// Whether the access token that signed an open request was revoked since, or has a role that may not approve.
    package var isRevoked = false

    /// A signature that counted is stored with its run, so ``isRevoked`` is not stored.
    private enum CodingKeys: String, CodingKey {
        case identity, name, signedAt, seenAt, reach, isRejection, reason, uid
    }

    package init(
        identity: String, name: String, signedAt: Timestamp, seenAt: Timestamp? = nil, reach: Int,
        isRejection: Bool = false, reason: String? = nil, uid: Int64? = nil
    ) {
        self.uid = uid
        self.identity = identity
        self.name = name
        self.signedAt = signedAt
        self.seenAt = max(seenAt ?? signedAt, signedAt)
        self.reach = reach
        self.isRejection = isRejection
        self.reason = reason
    }
}

/// A request with its signatures, in the order of arrival.
package struct ApprovalRecord: Hashable, Sendable {
    package var request: ApprovalRequest
    package var signatures: [ApprovalSignature]

    package init(_ request: ApprovalRequest, _ signatures: [ApprovalSignature]) {
        self.request = request
        self.signatures = signatures
    }
}

/// The record of a run that was started without its required signatures: when, by whom, and why.
package struct EmergencyOverride: Hashable, Sendable {
    package var at: Timestamp
    package var by: String
    package var reason: String

    package init(at: Timestamp, by: String, reason: String) {
        self.at = at
        self.by = by
        self.reason = reason
    }

    private static let mark = "without its signatures: "

    /// Returns the audit's text for a reason.
    package static func summary(_ reason: String) -> String { mark + reason }

    /// Returns the reason in an audit detail; `nil` if the detail records no start without signatures.
    package static func reason(in detail: String) -> String? {
        detail.place(of: mark).map { String(detail[$0.upperBound...]) }
    }

    /// A description for people.
    package var summary: String { "started without its signatures by \(by): \(reason)" }
}

extension ApprovalRules.Rule {
    /// The signatures in words, such as `the signatures of 2 people`.
    package var signatures: String {
        needs == 1 ? "the signature of 1 person" : "the signatures of \(needs.grouped) people"
    }

    /// The same with the rule for authors: `the signatures of 2 people who did not write it`.
    package var signers: String { signatures + (notByAuthor ? " who did not write it" : "") }
}

extension ApprovalRules {
    /// Describes the signatures that a plan with this reach needs; `nil` if it needs none.
    package func summary(forReach reach: Int) -> String? {
        if let ceiling, reach > ceiling {
            return "refused: the plan exceeds approvals.ceiling (\(ceiling.grouped)), which no signature overrides"
        }
        return rule(forReach: reach).map { "a plan for more than \($0.above.grouped) devices needs \($0.signers)" }
    }

    /// Tells whether a person may start a run without its required signatures.
    package func mayOverride(_ person: String) -> Bool {
        breakGlass && (breakGlassBy.isEmpty || breakGlassBy.contains { AccountName.isSame($0, person) })
    }
}
