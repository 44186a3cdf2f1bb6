package import Model

/// What is said to people about one stage of a run.
package struct StageWords {
    private let run: Run
    private let record: StageRecord
    private let stage: Stage

    package init(_ run: Run, _ record: StageRecord) {
        self.run = run
        self.record = record
        let stages = run.definition.campaign.stages ?? []
        stage = stages.indices.contains(record.index) ? stages[record.index] : Stage(.rest)
    }

    /// `stage 2 (1 %)`.
    package var name: String { "stage \(record.index + 1) (\(stage.words))" }

    /// How many there are is known when the audience is frozen.
    var opened: String {
        "\(name) of \(run.definition.campaign.stages?.count ?? 1) begins"
            + (run.isFrozen ? ": \(record.size.grouped) devices" : "")
    }

    var approval: String {
        "\(name), \(record.size.grouped) devices, waits for somebody to approve of it; `fanfare approve \(run.id)` sends it, "
            + "`fanfare cancel \(run.id)` does not"
    }

    package func approved(by actor: Actor) -> String {
        "\(name), \(record.size.grouped) devices, approved by \(actor.name)"
    }

    /// `stage 2 (1 %) was halted, too many were refused: 5 of 9 …`, and what to do; empty before there is a verdict.
    var verdict: String {
        guard let decision = record.decision else { return "" }
        return "\(name) \(finding)" + (decision.verdict == .go ? "" : "; \(advice)")
    }

    /// The same of a stage that was named already, without advice.
    package var finding: String {
        guard let decision = record.decision else { return "" }
        switch decision.verdict {
        case .go: return "proved itself: \(counts(decision))"
        case .halt:
            let what = decision.isAboutGone ? "too many devices are gone" : "too many were refused"
            return "was halted, \(what): \(counts(decision))"
        case .undecided: return "did not prove itself: \(counts(decision))\(missing(decision))"
        }
    }

    /// `6 of 12 answers for production devices in de were refusals, 5 % are put up with`
    private func counts(_ decision: StageDecision) -> String {
        let answers = decision.answers
        let bad = decision.isAboutGone ? answers.gone : answers.failed
        let what = decision.isAboutGone ? "say that the device is gone" : "are refusals"
        let unknown = answers.unknown > 0 ? ", \(answers.unknown.grouped) were never answered" : ""
        return "\(bad.grouped) of \(answers.answered.grouped) answers\(whose(decision.group)) \(what)\(unknown), "
            + "\((decision.tolerated * 100).percentText) is put up with"
    }

    private func whose(_ group: StageGroup?) -> String {
        guard let group else { return "" }
        let locales = run.definition.template.locales
        let language = group.locale.flatMap { locales.indices.contains($0) ? " in \(locales[$0])" : nil }
        return " for \(group.environment) devices\(language ?? "")"
    }

    private func missing(_ decision: StageDecision) -> String {
        let needed = StageJudge(stage, goneTolerated: record.goneTolerated).answersNeeded
        let judged = decision.answers.answered - decision.answers.gone
        return judged < needed ? ", and it takes \(needed.grouped) without a refusal to be sure" : ""
    }

    private var advice: String {
        "look at `fanfare report \(run.id)`; `fanfare resume \(run.id)` goes on all the same, `fanfare cancel \(run.id)` ends it"
    }
}
