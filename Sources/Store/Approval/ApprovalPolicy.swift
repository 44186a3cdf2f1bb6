package import Model

/// Whether a plan may be carried out: asked in the transaction that makes the run, with what is on record then.
///
/// Everything that is signed, the audience's definition, texts, schedule and stages, is in the digest: an edit makes another
/// plan, with no signature. What this rule weighs is who signed, when, and how many devices it was for.
package struct ApprovalPolicy: Hashable, Sendable, Codable {
    /// Why a signature does not count.
    package enum Fault: Hashable, Sendable {
        case byAuthor
        /// `people` names others, and not this account.
        case nobody(account: String)
        /// Another account of a person who has signed.
        case samePerson(String)
        case lapsed
        /// The clock was set back since it was signed.
        case fromFuture
        case drifted(reach: Int)
    }

    package struct Judged: Hashable, Sendable {
        package var signature: ApprovalSignature
        package var person: String
        /// Nil: it counts.
        package var fault: Fault?
    }

    package enum Decision: Hashable, Sendable {
        case approved([Judged])
        case waits([Judged])
        case rejected(ApprovalSignature)
    }

    package let rule: ApprovalRules.Rule
    /// As counted now.
    package let reach: Int
    /// People, not accounts.
    package let authors: Set<String>

    package init(rule: ApprovalRules.Rule, reach: Int, authors: Set<String>) {
        self.rule = rule
        self.reach = reach
        self.authors = authors
    }

    /// - Parameter signatures: of exactly this plan, in the order they came.
    package func decision(_ signatures: [ApprovalSignature], _ people: People, now: Timestamp) -> Decision {
        if let rejection = signatures.first(where: \.isRejection) { return .rejected(rejection) }
        let judged = judged(signatures, people, now: now)
        let counted = judged.filter { $0.fault == nil }
        return counted.count >= rule.needs ? .approved(counted) : .waits(judged)
    }

    /// Each with its person and, where it does not count, the reason. Of two accounts of one person the first counts, and
    /// so it does of two names of one uid: a name may come and go with a directory service.
    package func judged(_ signatures: [ApprovalSignature], _ people: People, now: Timestamp) -> [Judged] {
        var counted: Set<String> = []
        var countedUIDs: Set<Int64> = []
        return signatures.map { signature in
            let person = people.person(signature.identity)
            var fault: Fault? =
                people.knows(signature.identity) ? nil : .nobody(account: signature.identity)
            fault = fault ?? self.fault(of: signature, by: person, now: now)
            if fault == nil, let uid = signature.uid, !countedUIDs.insert(uid).inserted { fault = .samePerson(person) }
            if fault == nil, !counted.insert(person).inserted { fault = .samePerson(person) }
            return Judged(signature: signature, person: person, fault: fault)
        }
    }

    private func fault(of signature: ApprovalSignature, by person: String, now: Timestamp) -> Fault? {
        if rule.notByAuthor, authors.contains(person) { return .byAuthor }
        if signature.signedAt > now + ClockStep.least { return .fromFuture }
        if max(now, signature.seenAt) - signature.signedAt > rule.within { return .lapsed }
        let difference = Double((reach - signature.reach).magnitude) * 100
        if difference > rule.driftPercent * Double(signature.reach) { return .drifted(reach: signature.reach) }
        return nil
    }
}

extension ApprovalPolicy.Fault {
    package var words: String {
        switch self {
        case .byAuthor: "they had a hand in the plan"
        case .nobody(let account): "\(account) is nobody's account in `people`"
        case .samePerson(let person): "\(person) has signed with another account"
        case .lapsed: "it has lapsed"
        case .fromFuture: "the clock was set back since"
        case .drifted(let reach): "it was for \(reach.counted("device"))"
        }
    }
}
