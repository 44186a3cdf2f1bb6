import Foundation
package import Model

/// The texts about what people did with the pushes of a stage.
extension StageSummary {
    /// `12 of 4,980 opened it within 30 min (0.2 %), 4.1 % is usual, at least 2.1 % is required`.
    func summary(_ opens: StageOpens) -> String {
        let minutes = WrittenDuration.text(.seconds(60 * opens.minutes))
        let share = Proportion(opens.opened, of: opens.accepted).percentText ?? "0 %"
        let counts =
            "\(opens.opened.grouped) of \(opens.accepted.grouped) opened it within \(minutes) (\(share))"
        guard let usual = opens.usual, let limit = opens.limit else {
            return counts + ", and no earlier run tells what is usual, so the opens were not checked"
        }
        let source = opens.isOfApp ? "the app's other campaigns" : "the campaign"
        let percent = { (share: Double) in RoundedShare.percent(share, decimals: 1).percentText }
        return counts + ", \(percent(usual)) is usual (\(opens.earlier.count.counted("run")) of \(source)), "
            + "at least \(percent(limit)) is required"
    }

    /// What the comparison of the variants showed, and what the rest gets.
    package func summary(_ decided: VariantDecision) -> String {
        let verb = decided.by == .opens ? "opened it" : "reached the goal"
        let counts = decided.counts.enumerated().map { index, count in
            let share = Proportion(count.reached, of: count.accepted).percentText
            return "\(variant(index)) \(count.reached.grouped) of \(count.accepted.grouped) \(verb)"
                + (share.map { " (\($0))" } ?? "")
        }.joined(separator: ", ")
        let ranking = decided.ranking
        // With more than two variants, the best one is compared with the next one.
        let compared =
            ranking.order.count > 2 ? " between \(variant(ranking.order[0])) and \(variant(ranking.order[1]))" : ""
        let points = ranking.closest.map { closest in
            String(
                format: ", a difference of %.1f to %.1f points", closest.interval.lowerBound * 100,
                closest.interval.upperBound * 100) + compared
        }
        return counts + (points ?? "") + "; " + choice(decided)
    }

    private func choice(_ decided: VariantDecision) -> String {
        let chosen = decided.variant.map(variant) ?? ""
        return switch decided.cause {
        case .winner: "the rest gets \(chosen)"
        case .first: "the difference may be chance, so the rest gets \(chosen), the first variant"
        case .person: "the difference may be chance, and \(decided.person ?? "a person") chose \(chosen) for the rest"
        case nil: "the difference may be chance, so a person chooses"
        }
    }

    private func variant(_ index: Int) -> String {
        let variants = run.definition.campaign.variants
        return variants.indices.contains(index) ? variants[index].name : "variant \(index + 1)"
    }

    /// The decision about the variants, for the audit log.
    var decided: String { "\(name): \(record.decision?.variants.map(summary) ?? "")" }

    /// The reason of a run that waits until a person chooses a variant.
    var choice: String {
        let names = run.definition.campaign.variants.map(\.name).joined(separator: " or ")
        return "\(decided): `fanfare approve \(run.id) --variant NAME` sends \(names) to the rest, "
            + "`fanfare cancel \(run.id)` ends the run\(deadline)"
    }

    /// What a person chose, for the audit log.
    package func chosen(by actor: Actor) -> String {
        let chosen = record.decision?.variants?.variant.map(variant) ?? ""
        return "\(name): \(actor.name) chose \(chosen) for the rest"
    }
}
