package import Model
import Store

/// One stage of a run that is planned, and what it could show.
package struct PlannedStage: Hashable, Sendable {
    /// How soon a share of refusals would stop the run.
    package struct Notice: Hashable, Sendable {
        package var percent: Double
        /// Nil: it is put up with.
        package var answers: Int?
    }

    private static let shares = [100.0, 50, 25, 10]

    /// From 1.
    package var number: Int
    package var stage: Stage
    package var devices: Reach.StageSlice
    /// Answers without a refusal after which it may pass.
    package var answersNeeded: Int
    package var notices: [Notice]

    package var isRest: Bool { stage.members == .rest }
    /// Whether it can never show that it is good enough, so that a person will have to say so.
    package var isTooSmall: Bool { !isRest && devices.count < answersNeeded }

    /// Empty in a campaign without stages.
    static func all(_ campaign: Campaign, _ reach: Reach) -> [PlannedStage] {
        guard let stages = campaign.stages, stages.count > 1 else { return [] }
        return stages.enumerated().map { index, stage in
            let judge = StageJudge(stages, index, goneTolerated: nil)
            return PlannedStage(
                number: index + 1, stage: stage,
                devices: reach.stages.first { $0.index == index } ?? Reach.StageSlice(index: index),
                answersNeeded: judge.answersNeeded,
                notices: stage.members == .rest
                    ? [] : shares.map { Notice(percent: $0, answers: judge.answersToNotice(share: $0 / 100)) })
        }
    }

    /// `12 devices: en 10, de 2`, and what it needs to pass.
    package var words: [String] {
        let languages = devices.byLocale.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key.isEmpty ? "no language" : $0.key) \($0.value.grouped)" }
        let shown = languages.prefix(6).joined(separator: ", ") + (languages.count > 6 ? ", ..." : "")
        let size = "\(stage.words), \(devices.count.counted("device"))"
        let first = size + (isRest || shown.isEmpty ? "" : ": \(shown)")
        let approval = stage.needsApproval ? "begins when somebody approves of it" : nil
        if isRest { return [first, approval].compactMap(\.self) }
        let hold = stage.hold.map { "then holds for \(WrittenDuration.text($0))" }
        let noticed = notices.compactMap { notice in
            notice.answers.flatMap {
                $0 <= devices.count ? "\(notice.percent.percentText) after \($0.grouped)" : nil
            }
        }
        let notices =
            noticed.isEmpty ? nil : "stops by itself at refusals of \(noticed.joined(separator: ", ")) answers"
        return [first, approval, proof, notices, hold].compactMap(\.self)
    }

    private var proof: String {
        if stage.passesAsWhole { return "passes when each is accepted" }
        let tolerated = (stage.tolerated * 100).percentText
        guard isTooSmall else { return "puts up with \(tolerated) of refusals" }
        return "too few to show that under \(tolerated) fail (\(answersNeeded.counted("answer"))): it waits for you"
    }
}
