package import Model
import Store

/// One stage of a run: part of the stable shapes of `status RUN --json` and `report --format json`; keys are written in
/// snake_case, times in ISO 8601 and UTC.
package struct StageResult: Codable, Hashable, Sendable {
    /// From 1.
    package var stage: Int
    /// `seeds`, `1 %`, `the rest`.
    package var members: String
    /// The number of devices in the audience as it is frozen so far.
    package var devices: Int
    /// `waiting` (for the previous stage), `open`, or the last verdict: `go`, `halt`, `undecided`. `ended` if the run
    /// ended while the stage was open.
    package var state: String
    package var openedAt: String?
    package var decidedAt: String?
    /// When the next stage begins, if the verdict is `go` and no stop comes first. Absent once the next stage has
    /// begun, and once the run waits for approval or has ended.
    package var holdsUntil: String?
    package var answered, failed, gone, unknown: Int
    /// The tolerated percentage of rejected deliveries; absent for the stage `the rest`.
    package var tolerate: Double?
    package var needsApproval: Bool
    package var approvedBy: String?
    /// The person who resumed the run in spite of the verdict.
    package var releasedBy: String?
    /// The verdict in words; absent until there is one.
    package var verdict: String?
    /// The opens at the end of the hold; absent until they were compared, and in a stage that does not compare them.
    package var opens: OpensResult?
    /// The decision which variant the rest gets; absent before it, and in a stage that decides on none.
    package var variants: VariantDecisionResult?

    /// Returns the stages, or `nil` in a run without stages.
    package static func all(_ run: Run, _ records: [StageRecord]) -> [StageResult]? {
        guard let stages = run.definition.campaign.stages, stages.count == records.count else { return nil }
        return zip(stages, records).map { stage, record in
            let isOver = records.dropFirst(record.index + 1).first?.openedAt != nil
            return StageResult(run, stage, record, isOver: isOver)
        }
    }

    /// - Parameter isOver: whether the next stage has begun.
    private init(_ run: Run, _ stage: Stage, _ record: StageRecord, isOver: Bool) {
        self.stage = record.index + 1
        members = stage.summary
        devices = record.size
        let last = record.afterGo ?? record.decision
        let open = run.state.isFinal ? "ended" : "open"
        state = last?.verdict.rawValue ?? (record.openedAt == nil ? "waiting" : open)
        openedAt = record.openedAt?.iso8601
        decidedAt = last?.at.iso8601
        // A run waits for approval only after the hold.
        let isHeld = !isOver && !run.state.isFinal && run.halt != .approval
        if isHeld, record.decision?.variants == nil, let decision = last, decision.verdict == .go,
            let hold = stage.hold, hold > .zero
        {
            holdsUntil = decision.end(of: hold).iso8601
        }
        answered = record.answers.answered
        failed = record.answers.failed
        gone = record.answers.gone
        unknown = record.answers.unknown
        tolerate = stage.members == .rest ? nil : stage.tolerated * 100
        needsApproval = stage.needsApproval
        approvedBy = record.approvedBy
        releasedBy = record.releasedBy
        let summary = StageSummary(run, record).finding
        verdict = summary.isEmpty ? nil : summary
        opens = last?.opens.map(OpensResult.init)
        variants = record.decision?.variants.map { decided in
            VariantDecisionResult(
                decided, run.definition.campaign.variants.map(\.name), StageSummary(run, record).summary(decided))
        }
    }

    /// The activity or the result of the stage, for a person.
    package var summary: String {
        let released = releasedBy.map { "; \($0) continued it" } ?? ""
        if let verdict { return verdict + released + (holdsUntil.map { "; holds until \($0)" } ?? "") }
        let size = devices.counted("device")
        switch state {
        case "open" where members == Stage(.rest).summary: return "\(size), begun at \(openedAt ?? "")"
        case "open": return "\(size), \(answered.grouped) responses, \(failed.grouped) rejections so far"
        case "ended" where members == Stage(.rest).summary: return size
        case "ended": return "\(size), \(answered.grouped) answered, \(failed.grouped) refused"
        default:
            let approval = needsApproval ? approvedBy.map { ", approved by \($0)" } ?? ", needs approval" : ""
            return "\(size)\(approval)"
        }
    }
}

/// The stable shape of a stage that waits until a person approves it; keys are written in snake_case.
package struct WaitingStageResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    /// From 1.
    package var stage: Int
    /// `seeds`, `1 %`, `the rest`.
    package var members: String
    package var devices: Int
    /// Why the run waits, in words.
    package var reason: String
    /// The variants of which a person must choose one for the rest; absent if there is nothing to choose.
    package var choices: [String]?

    /// - Parameter stages: all stages of the run.
    init(_ run: Run, _ stage: StageResult, among stages: [StageResult]) {
        (self.run, campaign, occurrence) = (run.id, run.campaign, run.occurrence)
        (self.stage, members, devices) = (stage.stage, stage.members, stage.devices)
        reason = run.stateReason ?? ""
        choices = stages.lazy.compactMap(\.variants).first { $0.variant == nil }?.counts.map(\.name)
    }
}
