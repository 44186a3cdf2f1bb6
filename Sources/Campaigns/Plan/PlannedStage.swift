import Foundation
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
    /// The devices that the stage gives each variant. Empty in a stage that decides on no variant.
    package var byVariant: [VariantShare] = []
    /// The devices that get nothing because the stage begins late, by cause.
    package var lost: [StageForecast] = []

    package struct VariantShare: Hashable, Sendable {
        package var name: String
        package var devices: Int
    }

    package var isRest: Bool { stage.members == .rest }
    /// Whether the stage has too few devices to pass automatically, so that a person must decide.
    package var isTooSmall: Bool { !isRest && devices.count < answersNeeded }

    /// Returns the stages; empty for a campaign without stages.
    static func all(_ definition: RunDefinition, _ reach: Reach, _ waves: RecipientWaves?) -> [PlannedStage] {
        let campaign = definition.campaign
        guard let stages = campaign.stages, stages.count > 1 else { return [] }
        var planned = stages.enumerated().map { index, stage in
            let evaluator = StageEvaluator(stages, index, goneTolerated: nil)
            let devices = reach.stages.first { $0.index == index } ?? Reach.StageSlice(index: index)
            return PlannedStage(
                number: index + 1, stage: stage, devices: devices,
                answersNeeded: evaluator.answersNeeded,
                notices: stage.members == .rest
                    ? [] : shares.map { Notice(percent: $0, answers: evaluator.answersToNotice(share: $0 / 100)) },
                byVariant: stage.decides == nil
                    ? [] : split(devices.count, campaign.variants, counted: index == 0 ? reach.byVariant : []))
        }
        for forecast in StageForecast.all(definition, planned, reach, waves) {
            planned[forecast.stage - 1].lost.append(forecast)
        }
        return planned
    }

    /// - Parameter counted: the devices by variant, if no earlier stage has some of them. Otherwise they are estimated
    ///   by the weights.
    private static func split(
        _ devices: Int, _ variants: [Campaign.Variant], counted: [Int]
    ) -> [VariantShare] {
        if counted.count == variants.count {
            return zip(variants, counted).map { VariantShare(name: $0.name, devices: $1) }
        }
        let weights = Double(max(1, variants.reduce(0) { $0 + $1.weight }))
        return variants.map {
            VariantShare(name: $0.name, devices: Int((Double(devices) * Double($0.weight) / weights).rounded()))
        }
    }

    /// The smallest difference that the comparison of the variants can show, from 0 to 1. `nil` in a stage that decides
    /// on no variant, and if a variant goes to no device.
    package var detectable: Double? {
        let smallest = byVariant.map(\.devices).sorted().prefix(2)
        guard smallest.count == 2 else { return nil }
        return RateDifference.detectable(
            treated: smallest[0], heldOut: smallest[1], base: Plan.usualShare,
            z: VariantRanking.quantile(ofGroups: byVariant.count))
    }

    /// The stage in words, such as `12 devices: en 10, de 2`, and what the stage needs to pass.
    package var summary: [String] {
        let languages = devices.byLocale.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key.isEmpty ? "no language" : $0.key) \($0.value.grouped)" }
        let shown = languages.prefix(6).joined(separator: ", ") + (languages.count > 6 ? ", ..." : "")
        let size = "\(stage.summary), \(devices.count.counted("device"))"
        let first = size + (isRest || shown.isEmpty ? "" : ": \(shown)")
        let approval = stage.needsApproval ? "begins when a person approves it" : nil
        let lost = lost.map { $0.summary(of: devices.count) }
        if isRest { return [first, approval].compactMap(\.self) + lost }
        let hold = stage.decides == nil ? stage.hold.map { "then waits for \(WrittenDuration.text($0))" } : nil
        let opens = stage.opensAtLeastPercent.map {
            "then pauses the run if the share of opens is below \($0.percentText) of usual"
        }
        let noticed = notices.compactMap { notice in
            notice.answers.flatMap {
                $0 <= devices.count ? "\(notice.percent.percentText) after \($0.grouped)" : nil
            }
        }
        let notices =
            noticed.isEmpty
            ? nil : "stops automatically at a rejection rate of \(noticed.joined(separator: ", ")) responses"
        return [first, approval, proof, notices, hold, opens, decision].compactMap(\.self) + lost
    }

    /// What the stage compares, and what follows. `nil` in a stage that decides on no variant.
    private var decision: String? {
        guard let rule = stage.decides, let hold = stage.hold else { return nil }
        let variants = byVariant.map { "\($0.name) \($0.devices.grouped)" }.joined(separator: ", ")
        let measure = rule.by == .opens ? "was opened more" : "reached the goal more often"
        let otherwise =
            rule.undecided == .wait
            ? "a person chooses" : "the rest gets \(byVariant.first?.name ?? "the first variant")"
        let power = detectable.map {
            "; at a rate of 5 %, this can show a difference of " + String(format: "%.1f", $0 * 100) + " points or more"
        }
        return
            "tests \(variants); \(WrittenDuration.text(hold)) later the rest gets the variant that \(measure), and if "
            + "the difference may be chance, \(otherwise)" + (power ?? "")
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
