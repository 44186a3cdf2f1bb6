package import Model

/// The rule that decides whether a plan may be carried out. The store evaluates it in the transaction that creates the
/// run, with the records as they are then.
///
/// Everything that is signed is in the digest: the audience's definition, the texts, the schedule and the stages. An
/// edit therefore results in another plan, which has no signatures. This rule checks who signed, when, and for how
/// many devices.
package struct ApprovalPolicy: Hashable, Sendable, Codable {
    /// Why a signature does not count.
    package enum Fault: Hashable, Sendable {
        case byAuthor
        /// `people` lists other accounts, but not this one.
        case unknownAccount(account: String)
        /// The access token that signed was revoked since, or has a role that may not approve.
        case revoked
        /// Another account of the same person has signed already.
        case samePerson(String)
        case lapsed
        /// The signature's time is in the future: the clock was set back since.
        case fromFuture
        case drifted(reach: Int)
    }

    package struct Judged: Hashable, Sendable {
        package var signature: ApprovalSignature
        package var person: String
        /// `nil` if the signature counts.
        package var fault: Fault?
    }

    package enum Decision: Hashable, Sendable {
        case approved([Judged])
        case waits([Judged])
        case rejected(ApprovalSignature)
    }

    package let rule: ApprovalRules.Rule
    /// The number of devices, as counted now.
    package let reach: Int
    /// The people who wrote the plan, not their accounts.
    package let authors: Set<String>

    package init(rule: ApprovalRules.Rule, reach: Int, authors: Set<String>) {
        self.rule = rule
        self.reach = reach
        self.authors = authors
    }

    /// - Parameter signatures: all signatures of exactly this plan, in the order of arrival.
    package func decision(_ signatures: [ApprovalSignature], _ people: People, now: Timestamp) -> Decision {
        if let rejection = signatures.first(where: \.isRejection) { return .rejected(rejection) }
        let judged = judged(signatures, people, now: now)
        let counted = judged.filter { $0.fault == nil }
        return counted.count >= rule.needs ? .approved(counted) : .waits(judged)
    }

    /// Returns each signature with its person and, if it does not count, the reason. If two accounts belong to one
    /// person, the first signature counts. The same holds for two names of one uid, because a name may come and go with
    /// a directory service.
    package func judged(_ signatures: [ApprovalSignature], _ people: People, now: Timestamp) -> [Judged] {
        var counted: Set<String> = []
        var countedUIDs: Set<Int64> = []
        return signatures.map { signature in
            let person = people.person(signature.identity)
            var fault: Fault? =
                people.knows(signature.identity) ? nil : .unknownAccount(account: signature.identity)
            fault = fault ?? (signature.isRevoked ? .revoked : self.fault(of: signature, by: person, now: now))
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
    package var summary: String {
        switch self {
        case .byAuthor: "the signer worked on the plan"
        case .unknownAccount(let account): "\(account) has no entry in `people`"
        case .revoked: "its access token was revoked, or may no longer approve"
        case .samePerson(let person): "\(person) has signed with another account"
        case .lapsed: "it has lapsed"
        case .fromFuture: "the clock has been set back since"
        case .drifted(let reach): "it was signed for \(reach.counted("device"))"
        }
    }
}
