package import Model

/// The rule that evaluates the responses of one stage, while they arrive and when all have arrived. All constants of
/// the verdict are here.
///
/// A false halt of a run has a probability of at most 0.001. It is divided among the run's stages and three questions:
/// do too many fail, are too many devices gone, and do too many fail with one text in one environment.
package struct StageEvaluator: Sendable {
    package static let falseHaltMax = 0.001
    private static let ofWhole = 0.8
    private static let ofGone = 0.1
    private static let ofGroups = 0.1
    /// The maximum number of groups that share ``ofGroups``. A group is one text in one environment.
    private static let groupsMax = Double(StageGroup.judgedMax)
    /// The tolerated share of gone devices if neither the campaign nor its app has a history. ``goneMin`` is the
    /// lowest share that is ever tolerated.
    static let goneUsual = 0.3
    private static let goneMin = 0.05
    /// The minimum number of responses of a run that counts as history.
    private static let historyMin = 200
    /// The number of the campaign's last finished runs that determine the tolerated share of gone devices.
    package static let historyRuns = 5
    /// The number of last finished runs of the app's other campaigns. They count while the campaign itself has no
    /// history.
    package static let appHistoryRuns = 20
    /// The maximum number of finished runs of all apps that are searched for runs of the app.
    package static let appHistoryLookedAt = 200
    /// The maximum probability that a stage is held for gone devices although the real share is tolerated.
    private static let goneWrongMax = 0.001

    private let tolerated: Double
    private let goneTolerated: Double
    private let whole: SequentialTest
    private let gone: SequentialTest
    private let group: SequentialTest
    private let good: SequentialTest
    private let passesAsWhole: Bool

    package init(_ stages: [Stage], _ index: Int, goneTolerated: Double?) {
        self.init(stages[index], goneTolerated: goneTolerated, amongJudged: stages.count - 1)
    }

    /// - Parameter count: the number of the run's stages that are judged.
    package init(_ stage: Stage, goneTolerated: Double?, amongJudged count: Int = 1) {
        let falseHaltMax = Self.falseHaltMax / Double(max(1, count))
        tolerated = stage.tolerated
        self.goneTolerated = goneTolerated ?? Self.goneUsual
        whole = SequentialTest(tolerated: tolerated, falseHaltMax: falseHaltMax * Self.ofWhole)
        gone = SequentialTest(tolerated: self.goneTolerated, falseHaltMax: falseHaltMax * Self.ofGone)
        group = SequentialTest(
            tolerated: tolerated, falseHaltMax: falseHaltMax * Self.ofGroups / Self.groupsMax)
        good = .good(tolerated: tolerated, wrongMax: UpperBound.interimWrongMax)
        passesAsWhole = stage.passesAsWhole
    }

    /// Returns twice the highest share of gone devices in any of these runs, but at least 5 % and at most 90 %. So one
    /// unusually clean run stops nothing. Returns `nil` if all of them had too few responses.
    package static func goneTolerated(after runs: [(gone: Int, answered: Int)]) -> Double? {
        let shares = runs.filter { $0.answered >= historyMin }.map { Double($0.gone) / Double($0.answered) }
        return shares.max().map { min(0.9, max(goneMin, 2 * $0)) }
    }

    /// Returns the decision to halt if the responses so far prove a failure; `nil` otherwise. Call it whenever
    /// responses have arrived.
    ///
    /// Rejections arrive sooner than acceptances. So deliveries in flight count as not rejected until they are
    /// answered. A failure that is proven then remains proven, whatever the other responses are and in whichever order
    /// they come.
    ///
    /// - Parameters:
    ///   - answers: the responses of the whole stage.
    ///   - own: the responses of `group`.
    ///   - unanswered: the deliveries in flight, of the whole stage and of the group.
    package func halt(
        _ answers: StageAnswers, _ own: StageAnswers, of group: StageGroup,
        unanswered: (whole: Int, group: Int) = (0, 0), at now: Timestamp
    ) -> StageDecision? {
        halt(answers, unanswered: unanswered.whole, at: now)
            ?? halt(own, of: group, unanswered: unanswered.group, at: now)
    }

    /// Evaluates the whole stage and then each group in the same way.
    ///
    /// - Parameter unanswered: the deliveries in flight, by environment. Each group is assumed to have the same share
    ///   of them as of the environment's responses.
    package func halt(
        _ groups: [StageGroup: StageAnswers], unanswered: [PushEnvironment: Int], at now: Timestamp
    ) -> StageDecision? {
        let whole = groups.values.reduce(StageAnswers(), +)
        if let decision = halt(whole, unanswered: unanswered.values.reduce(0, +), at: now) { return decision }
        let judged = Dictionary(groups.map { ($0.key.judged, $0.value) }, uniquingKeysWith: +)
        let answered = judged.reduce(into: [:]) { $0[$1.key.environment, default: 0] += $1.value.answered }
        for (group, own) in judged.sorted(by: { $0.key.place < $1.key.place }) where own.failed > 0 {
            let (flying, all) = (unanswered[group.environment] ?? 0, answered[group.environment] ?? 0)
            let share = (Double(flying) * Double(own.answered) / Double(max(1, all))).rounded(.up)
            if let decision = halt(own, of: group, unanswered: Int(share), at: now) { return decision }
        }
        return nil
    }

    private func halt(_ answers: StageAnswers, unanswered: Int, at now: Timestamp) -> StageDecision? {
        let count = answers.answered + unanswered
        if whole.isProven(answers: count, failures: answers.failed) {
            return StageDecision(.halt, at: now, answers, unanswered: unanswered, tolerated: tolerated)
        }
        guard gone.isProven(answers: count, failures: answers.gone) else { return nil }
        return StageDecision(
            .halt, at: now, answers, unanswered: unanswered, tolerated: goneTolerated, isAboutGone: true)
    }

    private func halt(
        _ own: StageAnswers, of group: StageGroup, unanswered: Int, at now: Timestamp
    ) -> StageDecision? {
        guard self.group.isProven(answers: own.answered + unanswered, failures: own.failed) else { return nil }
        return StageDecision(.halt, at: now, own, unanswered: unanswered, tolerated: tolerated, group: group)
    }

    /// Returns the decision on a stage that gets no more responses. Missing responses count as failures.
    package func decision(on answers: StageAnswers, look: StageLook = .last, at now: Timestamp) -> StageDecision {
        let isGo = isGood(answers, look) && !isTooManyGone(answers, goneTolerated)
        var decision = StageDecision(
            isGo ? .go : .undecided, at: now, answers, tolerated: tolerated, look: look)
        if !passesAsWhole, answers.gone > 0 { decision.goneTolerated = goneTolerated }
        return decision
    }

    /// A device that is gone is no evidence about the push. Too many gone devices are evidence about the audience: an
    /// old import, or a host that is not APNs.
    private func isTooManyGone(_ answers: StageAnswers, _ tolerated: Double) -> Bool {
        !passesAsWhole && answers.gone > 0
            && UpperBound.isAbove(
                tolerated, answers: answers.answered, failures: answers.gone, wrongMax: Self.goneWrongMax)
    }

    /// - Parameter look: `nil` for a verdict of an earlier version, which always used the test for a single
    ///   evaluation.
    private func isGood(_ answers: StageAnswers, _ look: StageLook?) -> Bool {
        let bad = answers.failed + answers.unknown
        // A device that is gone is no evidence about the push: exclude it.
        let judged = answers.answered - answers.gone + answers.unknown
        if passesAsWhole { return bad == 0 && judged > 0 }
        switch look {
        case .interim: return good.isGood(answers: judged, failures: bad)
        case .last: return UpperBound.isBelow(tolerated, answers: judged, failures: bad)
        case nil: return UpperBound.isBelow(tolerated, answers: judged, failures: bad, wrongMax: UpperBound.wrongMax)
        }
    }

    /// Whether the counts of a decision lead to its verdict.
    package func confirms(_ decision: StageDecision) -> Bool {
        let answers = decision.answers
        switch decision.verdict {
        case .go, .undecided:
            let isHeld = decision.goneTolerated.map { isTooManyGone(answers, $0) } ?? false
            return (isGood(answers, decision.look) && !isHeld) == (decision.verdict == .go)
        case .halt where decision.opens != nil: return true
        case .halt:
            let count = answers.answered + (decision.unanswered ?? 0)
            if decision.isAboutGone { return gone.isProven(answers: count, failures: answers.gone) }
            let test = decision.group == nil ? whole : group
            return test.isProven(answers: count, failures: answers.failed)
        }
    }

    /// The number of responses without a failure after which the stage may pass.
    package var answersNeeded: Int { passesAsWhole ? 1 : UpperBound.answersNeeded(tolerated) }

    /// Returns how many responses it takes until this share of failures is noticed; `nil` if the share is tolerated.
    package func answersToNotice(share: Double) -> Int? { whole.answersToNotice(share: share) }
}

extension StageGroup {
    /// The order in which groups are judged.
    fileprivate var place: (Int64, Int) { (environment.code, locale ?? -1) }
}
