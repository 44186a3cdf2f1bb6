import Model
import Store

/// The stable shape of a plan to be approved, compared with the last run of its campaign; keys are written in
/// snake_case.
package struct ApprovalDetailResult: Codable, Hashable, Sendable {
    /// A fact that an approver checks before signing.
    package struct Fact: Codable, Hashable, Sendable {
        /// The name of the fact, such as `devices`, `audience` or `text de body`.
        package var name: String
        /// The value in this plan; absent if only the last run has the fact.
        package var now: String?
        /// The value in the last run; absent if that run did not have the fact, or there was no run.
        package var before: String?
        /// Whether the value differs from that of the last run; `false` if there was no run. Always `false` for
        /// segments, the occurrence, the start and the correction.
        package var differs: Bool
    }

    /// The first word of the names of payloads.
    package static let payloadPrefix = "payload"
    /// The name of the fact with the audience.
    package static let audience = "audience"

    package var approval: ApprovalResult
    /// The environments that the plan would reach now, in words: `PRODUCTION: 18,812 devices`; empty if it reaches no
    /// device, or no longer waits.
    package var sentTo: String
    /// The guards that would refuse the run now, in words; absent if none would.
    package var refusals: [String]?
    /// Which run has just sent, or still sends, the same content; absent if there is none.
    package var sentBefore: String?
    /// The probable mistakes in the texts with the given values; absent if there are none.
    package var lint: [String]?
    /// The id of the run that the plan corrects, or else of the campaign's last finished run; absent if there is none.
    package var sinceRun: Int64?
    package var facts: [Fact]

    /// - Parameters:
    ///   - segments: the contents of the audience's segments, which a signature on the plan covers.
    ///   - correction: the campaign's prepared correction, as its file is now.
    init(
        _ approval: ApprovalResult, _ definition: RunDefinition, segments: SegmentContents, correction: Template?,
        previous: PreviousRun?, findings: ApprovePlans.Findings
    ) {
        self.approval = approval
        sentTo = findings.sentTo
        refusals = findings.refusals.isEmpty ? nil : findings.refusals.map(\.facts)
        sentBefore = findings.earlier
        lint = findings.lint.isEmpty ? nil : findings.lint
        sinceRun = previous?.run.id
        let now = ApprovalFacts(definition, reach: approval.reach, occurrence: approval.occurrence)
        let before = previous.map {
            ApprovalFacts($0.run.definition, reach: $0.reach, occurrence: $0.run.occurrence)
        }
        let values = before.map { Dictionary($0.all) { first, _ in first } } ?? [:]
        // The contents of a segment at the last run are not recorded, so there is no value to compare with.
        facts = (segments.expressions.map { ($0, $1) } + segments.members.map { ($0, Self.summary(ofMembers: $1)) })
            .sorted { $0.0 < $1.0 }
            .map { Fact(name: "segment \($0)", now: $1, before: nil, differs: false) }
        facts += now.all.map { name, value in
            Fact(
                name: name, now: value, before: values[name],
                differs: before != nil && values[name] != value && !ApprovalFacts.ofOneRun.contains(name))
        }
        // The last run did not include the prepared correction, so there is no value to compare with either.
        facts += (correction.map { ApprovalFacts(ofCorrection: $0, definition) }?.all ?? []).map {
            Fact(name: $0, now: $1, before: nil, differs: false)
        }
        let names = Set(now.all.map(\.0)).union(ApprovalFacts.ofOneRun)
        facts += (before?.all ?? []).filter { !names.contains($0.0) }.map { name, value in
            Fact(name: name, now: nil, before: value, differs: true)
        }
    }

    /// Returns text such as `3 members, 9f86d081884c`, with enough digits of the hash to compare by eye.
    private static func summary(ofMembers text: String) -> String {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let count = Int(parts[0]) else { return "members" }
        return "\(count.counted("member")), \(parts[1].prefix(12))"
    }
}

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
        missing = max(0, needs - judged.count { $0.fault == nil && !$0.signature.isRejection })
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

extension ApprovalResult {
    /// Whether the plan waits for signatures, or has them and was not used.
    package var isOpen: Bool { state == ApprovalRequest.State.open.rawValue }

    /// How many signatures count: `0 of 1 signature`.
    package var signed: String { "\(needs - missing) of \(needs.counted("signature"))" }
}
