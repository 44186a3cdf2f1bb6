package import Model

/// Says what the answers of one stage mean, while they come in and when all are in. All constants of the verdict are here.
///
/// A false halt of a run has a probability of at most 0.001, shared out over its stages and over three questions: do too many fail, are too many devices
/// gone, and do too many fail of those who got one text in one environment.
package struct StageJudge: Sendable {
    package static let falseHaltMax = 0.001
    private static let ofWhole = 0.8
    private static let ofGone = 0.1
    private static let ofGroups = 0.1
    /// So many texts and environments share in ``ofGroups``.
    private static let groupsMax = 200.0
    /// Devices found gone that are put up with where the campaign has no history, and at least.
    private static let goneUsual = 0.3
    private static let goneMin = 0.05
    /// Of fewer answers the last run says nothing.
    private static let historyMin = 200

    private let tolerated: Double
    private let goneTolerated: Double
    private let whole: SequentialTest
    private let gone: SequentialTest
    private let group: SequentialTest
    private let passesAsWhole: Bool

    package init(_ stages: [Stage], _ index: Int, goneTolerated: Double?) {
        self.init(stages[index], goneTolerated: goneTolerated, amongJudged: stages.count - 1)
    }

    /// - Parameter count: stages of the run that are judged.
    package init(_ stage: Stage, goneTolerated: Double?, amongJudged count: Int = 1) {
        let falseHaltMax = Self.falseHaltMax / Double(max(1, count))
        tolerated = stage.tolerated
        self.goneTolerated = goneTolerated ?? Self.goneUsual
        whole = SequentialTest(tolerated: tolerated, falseHaltMax: falseHaltMax * Self.ofWhole)
        gone = SequentialTest(tolerated: self.goneTolerated, falseHaltMax: falseHaltMax * Self.ofGone)
        group = SequentialTest(
            tolerated: tolerated, falseHaltMax: falseHaltMax * Self.ofGroups / Self.groupsMax)
        passesAsWhole = stage.passesAsWhole
    }

    /// Twice as many as were gone among those answered in the campaign's last run; nil: it had too few.
    package static func goneTolerated(afterGone gone: Int, of answered: Int) -> Double? {
        answered >= historyMin ? min(0.9, max(goneMin, 2 * Double(gone) / Double(answered))) : nil
    }

    /// Nil: nothing is shown yet. To be asked after every answer.
    ///
    /// - Parameters:
    ///   - answers: of the whole stage so far.
    ///   - own: of the group that the last answer belongs to.
    package func halt(
        _ answers: StageAnswers, _ own: StageAnswers, of group: StageGroup, at now: Timestamp
    ) -> StageDecision? {
        if whole.isProven(answers: answers.answered, failures: answers.failed) {
            return StageDecision(.halt, at: now, answers, tolerated: tolerated)
        }
        if gone.isProven(answers: answers.answered, failures: answers.gone) {
            return StageDecision(.halt, at: now, answers, tolerated: goneTolerated, isAboutGone: true)
        }
        if self.group.isProven(answers: own.answered, failures: own.failed) {
            return StageDecision(.halt, at: now, own, tolerated: tolerated, group: group)
        }
        return nil
    }

    /// When nothing more will be answered. Missing answers count as failures would.
    package func end(_ answers: StageAnswers, at now: Timestamp) -> StageDecision {
        StageDecision(isGood(answers) ? .go : .undecided, at: now, answers, tolerated: tolerated)
    }

    private func isGood(_ answers: StageAnswers) -> Bool {
        let bad = answers.failed + answers.unknown
        // Whoever is gone says nothing of the push.
        let judged = answers.answered - answers.gone + answers.unknown
        if passesAsWhole { return bad == 0 && judged > 0 }
        return UpperBound.isBelow(tolerated, answers: judged, failures: bad)
    }

    /// Whether the counts of a decision lead to its verdict.
    package func confirms(_ decision: StageDecision) -> Bool {
        let answers = decision.answers
        switch decision.verdict {
        case .go: return isGood(answers)
        case .undecided: return !isGood(answers)
        case .halt:
            if decision.isAboutGone { return gone.isProven(answers: answers.answered, failures: answers.gone) }
            let test = decision.group == nil ? whole : group
            return test.isProven(answers: answers.answered, failures: answers.failed)
        }
    }

    /// Answers without a failure after which the stage may pass.
    package var answersNeeded: Int { passesAsWhole ? 1 : UpperBound.answersNeeded(tolerated) }

    /// How many answers it takes until this share of failures is noticed; nil: it is put up with.
    package func answersToNotice(share: Double) -> Int? { whole.answersToNotice(share: share) }
}
