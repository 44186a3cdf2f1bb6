package import Model
import Store

/// One stage of a planned run, with the numbers of responses that it needs to pass or to stop.
package struct PlannedStage: Hashable, Sendable {
    /// The number of responses after which this share of refusals would stop the run.
    package struct Notice: Hashable, Sendable {
        package var percent: Double
        /// `nil` if the share is tolerated.
        package var answers: Int?
    }

    private static let shares = [100.0, 50, 25, 10]

    /// The number of the stage, from 1.
    package var number: Int
    package var stage: Stage
    package var devices: Reach.StageSlice
    /// The number of responses, all without a refusal, after which the stage may pass.
    package var answersNeeded: Int
    package var notices: [Notice]

    package var isRest: Bool { stage.members == .rest }
    /// Whether the stage has too few devices to pass automatically, so that a person must decide.
    package var isTooSmall: Bool { !isRest && devices.count < answersNeeded }

    /// Returns the stages; empty for a campaign without stages.
    static func all(_ campaign: Campaign, _ reach: Reach) -> [PlannedStage] {
        guard let stages = campaign.stages, stages.count > 1 else { return [] }
        return stages.enumerated().map { index, stage in
            let evaluator = StageEvaluator(stages, index, goneTolerated: nil)
            return PlannedStage(
                number: index + 1, stage: stage,
                devices: reach.stages.first { $0.index == index } ?? Reach.StageSlice(index: index),
                answersNeeded: evaluator.answersNeeded,
                notices: stage.members == .rest
                    ? [] : shares.map { Notice(percent: $0, answers: evaluator.answersToNotice(share: $0 / 100)) })
        }
    }

    /// The stage in words, such as `12 devices: en 10, de 2`, and what the stage needs to pass.
    package var summary: [String] {
        let languages = devices.byLocale.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key.isEmpty ? "no language" : $0.key) \($0.value.grouped)" }
        let shown = languages.prefix(6).joined(separator: ", ") + (languages.count > 6 ? ", ..." : "")
        let size = "\(stage.summary), \(devices.count.counted("device"))"
        let first = size + (isRest || shown.isEmpty ? "" : ": \(shown)")
        let approval = stage.needsApproval ? "begins when a person approves it" : nil
        if isRest { return [first, approval].compactMap(\.self) }
        let hold = stage.hold.map { "then waits for \(WrittenDuration.text($0))" }
        let noticed = notices.compactMap { notice in
            notice.answers.flatMap {
                $0 <= devices.count ? "\(notice.percent.percentText) after \($0.grouped)" : nil
            }
        }
        let notices =
            noticed.isEmpty
            ? nil : "stops automatically at a rejection rate of \(noticed.joined(separator: ", ")) responses"
        return [first, approval, proof, notices, hold].compactMap(\.self)
    }

    private var proof: String {
        if stage.passesAsWhole { return "passes if every push is accepted" }
        let tolerated = (stage.tolerated * 100).percentText
        guard isTooSmall else { return "tolerates \(tolerated) rejections" }
        return
            "too few devices to show that fewer than \(tolerated) fail (needs \(answersNeeded.counted("response"))): it waits for a "
            + "person"
    }
}
