/// What the configuration asks for before a run that reaches many devices may start; see `approvals` and `people` in
/// `fanfare.yaml`.
package struct ApprovalRules: Hashable, Sendable {
    /// Above a reach, so many people must have signed the plan.
    package struct Rule: Hashable, Sendable, Codable {
        /// A run of more devices than this needs the signatures.
        package var above: Int
        /// Different people.
        package var needs: Int
        package var notByAuthor: Bool
        /// A signature lapses after this.
        package var within: Duration
        /// The reach may differ by so much from what it was when somebody signed.
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

        /// The most devices that a signature for this reach lets pass.
        package func most(signedFor reach: Int) -> Int { reach + Int(Double(reach) * driftPercent / 100) }
    }

    /// Folders.
    package struct Files: Hashable, Sendable {
        package var campaigns: String
        package var templates: String

        package init(campaigns: String, templates: String) {
            self.campaigns = campaigns
            self.templates = templates
        }
    }

    package var rules: [Rule]
    /// No run reaches more devices than this, whoever signs; nil: no limit.
    package var ceiling: Int?
    /// Whether a run may start without its signatures, for a reason that goes on record.
    package var breakGlass: Bool
    /// The people who may do that; empty: everybody.
    package var breakGlassBy: [String]
    package var people: ConfiguredPeople
    /// Where campaigns and templates stand, to know who wrote them; nil: nobody asks.
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

    /// What a run of this reach needs: of several rules that apply, the strictest part of each. Nil: nothing. Its
    /// ``Rule/above`` is the largest of them, above which all of these parts are asked for.
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
    /// The most devices that a run of this reach may grow to before another rule or the ceiling applies; `nil` for no
    /// limit. Its signatures may let fewer pass, see ``Rule/most(signedFor:)``.
    ///
    /// - Parameter isPassedOver: it starts without its signatures; the ceiling holds all the same.
    package func most(forReach reach: Int, isPassedOver: Bool) -> Int? {
        guard !isPassedOver else { return ceiling }
        let next = rules.map(\.above).filter { $0 >= reach }.min()
        return [next, ceiling].compactMap(\.self).min()
    }
}

extension Actor {
    /// The account somebody came with, by where it is known: `os:anna` of the operating system, `token:anna-mac` of an
    /// access token, `proxy:anna` of a proxy that signs people in.
    package var identity: String {
        if let signedInAs { return signedInAs }
        return switch authentication {
        case .account(_, let user): "os:\(user)"
        case .none: "name:\(name)"
        }
    }

    /// The uid behind ``identity``; `nil` if that is no account of the operating system.
    package var identityUID: Int64? {
        if signedInAs != nil { return signedInUID }
        guard case .account(let uid, _) = authentication else { return nil }
        return uid
    }
}

/// A plan that waits for signatures, or did.
package struct ApprovalRequest: Hashable, Sendable {
    /// Each state but the first is an end.
    package enum State: String, Hashable, Sendable, CaseIterable {
        /// Signatures may come: then ``used``, ``rejected``, ``replaced`` or ``lapsed``.
        case open
        /// A run was started with it; it serves no second one.
        case used
        /// Somebody said no.
        case rejected
        /// The plan of the same occurrence has changed.
        case replaced
        /// Its occurrence is over and was not sent.
        case lapsed
    }

    package var id: Int64
    package var campaign: String
    package var topic: String
    /// Of the campaign's schedule; empty: a run that somebody starts.
    package var occurrence: String
    /// As `fanfare plan` prints it.
    package var plan: String
    /// SHA-256 in hex of everything that is signed.
    package var digest: String
    /// When it was last counted.
    package var reach: Int
    package var needs: Int
    /// Identities of those who made what is asked for, and of who asked.
    package var authors: [String]
    package var askedBy: String
    package var askedAt: Timestamp
    package var state: State
    package var run: Int64?
    package var definition: RunDefinition

    package init(
        id: Int64 = 0, definition: RunDefinition, occurrence: String, plan: String, digest: String, reach: Int,
        needs: Int, authors: [String], askedBy: String, askedAt: Timestamp, state: State = .open, run: Int64? = nil
    ) {
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
    /// For the audit: `new-podcast 2026-12-01T09:00, plan p1-…`.
    package var words: String { "\(campaign)\(occurrence.isEmpty ? "" : " \(occurrence)"), plan \(plan)" }

    /// For the audit: what was signed and why, and whose word it is where somebody else brought it.
    package func words(of signature: ApprovalSignature, by actor: Actor) -> String {
        words + (signature.reason.map { ": \($0)" } ?? "")
            + (signature.identity == actor.identity ? "" : "; of \(signature.name), brought by \(actor.name)")
    }

    /// What was counted anew for the same plan.
    package mutating func take(_ other: ApprovalRequest) {
        plan = other.plan
        reach = other.reach
        needs = other.needs
        // Whoever asks again is no author for that.
        authors = Set(authors + other.authors.filter { $0 != other.askedBy }).sorted()
    }
}

/// Somebody's word on a plan.
package struct ApprovalSignature: Hashable, Sendable, Codable {
    /// The account, see ``Actor/identity``.
    package var identity: String
    /// For a person to read.
    package var name: String
    package var signedAt: Timestamp
    /// The latest time that the store has seen since; at least ``signedAt``.
    package var seenAt: Timestamp
    /// As counted when it was signed.
    package var reach: Int
    package var isRejection: Bool
    package var reason: String?
    /// Of the operating system's account; `nil` for an account of another kind.
    package var uid: Int64?

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

/// A request with its signatures, in the order they came.
package struct ApprovalRecord: Hashable, Sendable {
    package var request: ApprovalRequest
    package var signatures: [ApprovalSignature]

    package init(_ request: ApprovalRequest, _ signatures: [ApprovalSignature]) {
        self.request = request
        self.signatures = signatures
    }
}

/// Who started a run without the signatures that it needed, and why.
package struct BrokenGlass: Hashable, Sendable {
    package var at: Timestamp
    package var by: String
    package var reason: String

    package init(at: Timestamp, by: String, reason: String) {
        self.at = at
        self.by = by
        self.reason = reason
    }

    private static let mark = "without its signatures: "

    /// For the audit.
    package static func words(_ reason: String) -> String { mark + reason }

    /// As the audit has it; nil: it says nothing of the kind.
    package static func reason(in detail: String) -> String? {
        detail.firstRange(of: mark).map { String(detail[$0.upperBound...]) }
    }

    /// For a person.
    package var words: String { "started without its signatures by \(by): \(reason)" }
}

extension ApprovalRules {
    /// What a plan of so many devices needs; nil: nothing.
    package func words(forReach reach: Int) -> String? {
        if let ceiling, reach > ceiling {
            return "refused: approvals.ceiling is \(ceiling.grouped), which nothing passes"
        }
        return rule(forReach: reach).map { rule in
            "above \(rule.above.grouped) it needs the signatures of \(rule.needs) "
                + (rule.needs == 1 ? "person" : "people") + (rule.notByAuthor ? " who did not write it" : "")
        }
    }

    /// Whether a person may start without signatures what needs them.
    package func mayBreakGlass(_ person: String) -> Bool {
        breakGlass && (breakGlassBy.isEmpty || breakGlassBy.contains { AccountName.isSame($0, person) })
    }
}
