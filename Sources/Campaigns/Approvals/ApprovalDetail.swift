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
    /// The run that has removed the notification from the screens since, if the plan is a correction; absent if none
    /// has. The correction shows the notification again.
    package var removedBy: Int64?
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
        removedBy = findings.removedBy
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
