package import Model

/// The texts for people about one stage of a run.
package struct StageSummary {
    let run: Run
    let record: StageRecord
    let stage: Stage

    package init(_ run: Run, _ record: StageRecord) {
        self.run = run
        self.record = record
        let stages = run.definition.campaign.stages ?? []
        stage = stages.indices.contains(record.index) ? stages[record.index] : Stage(.rest)
    }

    /// `stage 2 (1 %)`.
    package var name: String { "stage \(record.index + 1) (\(stage.summary))" }

    /// The number of devices is known only after the freeze.
    var opened: String {
        "\(name) of \(run.definition.campaign.stages?.count ?? 1) begins"
            + (run.isFrozen ? ": \(record.size.counted("device"))" : "")
    }

    var approval: String {
        "\(name), \(record.size.counted("device")), waits for approval; `fanfare approve \(run.id) "
            + "--stage \(record.index + 1)` sends it, `fanfare cancel \(run.id)` ends the run\(deadline)"
    }

    /// `; its pushes expire at 2026-11-30 14:00 UTC`, for a stage that waits for a person. Empty if Fanfare sets no
    /// limit.
    var deadline: String {
        guard let life = run.definition.expiry.after, life > .zero else { return "" }
        guard run.definition.wall == nil else {
            return "; its pushes expire \(WrittenDuration.text(life)) after the turn of their time zone"
        }
        return run.definition.expiry.moment(wave: nil).map { "; its pushes expire at \($0.minute) UTC" } ?? ""
    }

    package func approved(by actor: Actor) -> String {
        "\(name), \(record.size.counted("device")), approved by \(actor.name)"
    }

    /// `stage 2 (1 %) was halted, too many pushes were rejected: 5 of 9 …`, with advice; empty before there is a
    /// verdict.
    var verdict: String {
        guard let decision = record.decision else { return "" }
        return "\(name) \(finding)" + (decision.verdict == .go && record.afterGo == nil ? "" : "; \(advice)")
    }

    /// The verdict without the stage's name and without advice.
    package var finding: String {
        guard let decision = record.decision else { return "" }
        let parts = [finding(decision), decision.opens.map(summary), decision.variants.map(summary)]
        let first = parts.compactMap(\.self).joined(separator: "; ")
        guard let later = record.afterGo else { return first }
        return "\(first); later it \(finding(later))"
    }

    private func finding(_ decision: StageDecision) -> String {
        switch decision.verdict {
        case .go: return "passed: \(counts(decision))"
        case .halt where decision.opens != nil:
            return "was halted, too few devices opened it: \(decision.opens.map(summary) ?? "")"
        case .halt:
            let what = decision.isAboutGone ? "too many devices are gone" : "too many pushes were rejected"
            return "was halted, \(what): \(counts(decision))"
        case .undecided where decision.answers == StageAnswers() && leftOut(decision) != nil:
            return "did not pass: no responses, \(leftOut(decision) ?? "")"
        case .undecided: return "did not pass: \(counts(decision))\(missing(decision))"
        }
    }

    /// `6 of 12 responses for production devices in de are rejections, 5 % is tolerated`.
    private func counts(_ decision: StageDecision) -> String {
        let answers = decision.answers
        let bad = decision.isAboutGone ? answers.gone : answers.failed
        let what = decision.isAboutGone ? "say that the device is gone" : "are rejections"
        let gone = decision.goneTolerated.map {
            "\(answers.gone.counted("device is", "devices are")) gone (\(($0 * 100).percentText) is tolerated)"
        }
        let parts = [
            "\(bad.grouped) of \(answers.answered.grouped) responses\(whose(decision.group)) \(what)",
            gone,
            unanswered(decision),
            decision.unanswered.map { "\($0.counted("more was in flight", "more were in flight"))" },
            leftOut(decision),
            stage.passesAsWhole
                ? "every push must be accepted" : "\((decision.tolerated * 100).percentText) is tolerated",
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    /// `105 were without a response, 2 ended with an APNs error`; `nil` if all got a response.
    private func unanswered(_ decision: StageDecision) -> String? {
        let unknown = decision.answers.unknown
        guard unknown > 0 else { return nil }
        guard let errors = decision.apnsErrors.map({ min($0, unknown) }) else {
            return "\(unknown.counted("was", "were")) without a response or ended with an APNs error"
        }
        let silent = unknown - errors
        let parts = [
            silent > 0 ? "\(silent.counted("was", "were")) without a response" : nil,
            errors > 0 ? "\(errors.grouped) ended with an APNs error" : nil,
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }

    /// `3 of 3 seeds were left out: frequency_cap`; with several reasons, `2 frequency_cap, 1 expired` at the end.
    /// `nil` if no device was left out.
    private func leftOut(_ decision: StageDecision) -> String? {
        guard let leftOut = decision.leftOut, !leftOut.isEmpty else { return nil }
        let sorted = leftOut.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let reasons = sorted.map { sorted.count > 1 ? "\($0.value.grouped) \($0.key)" : $0.key }
        return "\(leftOut.values.reduce(0, +).grouped) of \(record.size.grouped) "
            + "\(stage.seeds == nil ? "devices" : "seeds") were left out: \(reasons.joined(separator: ", "))"
    }

    private func whose(_ group: StageGroup?) -> String {
        guard let group else { return "" }
        let locales = run.definition.template.locales
        let language = group.locale.flatMap { index in
            if index == StageGroup.localesMax { return " in the other languages" }
            return locales.indices.contains(index) ? " in \(locales[index])" : nil
        }
        return " for \(group.environment) devices\(language ?? "")"
    }

    private func missing(_ decision: StageDecision) -> String {
        let needed = StageEvaluator(stage, goneTolerated: record.goneTolerated).answersNeeded
        let judged = decision.answers.answered - decision.answers.gone
        return judged < needed ? ", and \(needed.grouped) without a rejection are needed to pass" : ""
    }

    private var advice: String {
        "check `fanfare report \(run.id)`; `fanfare resume \(run.id)` continues anyway, `fanfare cancel \(run.id)` "
            + "ends it"
    }
}
