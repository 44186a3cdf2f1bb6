import Model
import Store

/// The stable shape of a plan that waits or waited for signatures; keys are written in snake_case.
package struct ApprovalResult: Codable, Hashable, Sendable {
    package struct Signature: Codable, Hashable, Sendable {
        package var by: String
        package var person: String
        package var signedAt: String
        package var lapsesAt: String
        package var reach: Int
        package var isRejection: Bool
        package var reason: String?
        /// The reason why the signature does not count, in words; absent for a signature that counts and for a
        /// rejection.
        package var fault: String?
    }

    package var campaign: String
    /// The topic of the campaign's app.
    package var topic: String
    /// Absent for a run that a person starts.
    package var occurrence: String?
    package var plan: String
    package var digest: String
    /// The number of the request.
    package var number: Int64
    package var reach: Int
    package var state: String
    package var needs: Int
    /// The number of missing signatures.
    package var missing: Int
    /// The first words that a phone shows; absent for a push that shows none of its own.
    package var excerpt: String?
    package var askedBy: String
    package var askedAt: String
    /// What the person who asked tells the approvers; absent if nothing.
    package var note: String?
    package var authors: [String]
    package var signatures: [Signature]
    /// The time at which the schedule starts the plan; absent for a run that a person starts.
    package var startsAt: String?
    /// The time at which too few signatures count; absent while some are missing.
    package var lapsesAt: String?
    /// `true` if the campaign's files, a segment or the correction has changed since the request, so that a start needs
    /// another plan; absent otherwise.
    package var isOutdated: Bool?
    /// The run that was created from the plan; absent if there is none.
    package var run: Int64?
    /// The run that the plan corrects; absent for a plan of a campaign.
    package var corrects: Int64?

    init(_ record: ApprovalRecord, _ people: People, _ policy: ApprovalPolicy, now: Timestamp) {
        let request = record.request
        campaign = request.campaign
        topic = request.definition.campaign.topic
        occurrence = request.occurrence.isEmpty ? nil : request.occurrence
        (plan, digest, reach, state) = (request.plan, request.digest, request.reach, request.state.rawValue)
        needs = policy.rule.needs
        excerpt = request.definition.excerpt(in: [])
        askedBy = people.person(request.askedBy)
        askedAt = request.askedAt.iso8601
        (number, note) = (request.id, request.note)
        authors = Set(request.authors.map(people.person)).sorted()
        run = request.run
        corrects = request.definition.correction?.run
        let judged = policy.judged(record.signatures, people, now: now)
        let counting = judged.filter { $0.fault == nil && !$0.signature.isRejection }
        missing = max(0, needs - counting.count)
        if !request.occurrence.isEmpty { startsAt = request.definition.plannedAt.iso8601 }
        if missing == 0, needs > 0 {
            // Later signatures replace those that lapse first.
            let lapses = counting.map { $0.signature.signedAt + policy.rule.within }.sorted(by: >)
            lapsesAt = lapses[needs - 1].iso8601
        }
        signatures = judged.map { entry in
            Signature(
                by: entry.signature.name, person: entry.person, signedAt: entry.signature.signedAt.iso8601,
                lapsesAt: (entry.signature.signedAt + policy.rule.within).iso8601, reach: entry.signature.reach,
                isRejection: entry.signature.isRejection, reason: entry.signature.reason,
                fault: entry.signature.isRejection ? nil : entry.fault?.summary)
        }
    }
}

/// The stable shape of `approvals --json`.
package struct ApprovalListResult: Codable, Hashable, Sendable {
    package var approvals: [ApprovalResult]
    /// The stages of runs that wait until a person approves them; absent if there are none.
    package var stages: [WaitingStageResult]?
}
