/// What APNs, or the renderer in its place, said of a stage's deliveries.
package struct StageAnswers: Hashable, Sendable, Codable {
    /// Final answers, refusals among them.
    package var answered = 0
    /// Refusals that are not a device's own: everything but 410.
    package var failed = 0
    /// 410: the app is not there any more. To be held against this audience's own history.
    package var gone = 0
    /// Nobody knows, and nothing more will be done about it.
    package var unknown = 0

    package init() {}

    package init(answered: Int, failed: Int = 0, gone: Int = 0, unknown: Int = 0) {
        self.answered = answered
        self.failed = failed
        self.gone = gone
        self.unknown = unknown
    }

    package static func + (first: StageAnswers, second: StageAnswers) -> StageAnswers {
        StageAnswers(
            answered: first.answered + second.answered, failed: first.failed + second.failed,
            gone: first.gone + second.gone, unknown: first.unknown + second.unknown)
    }

    /// Nobody knows what became of it.
    package static let lost = StageAnswers(answered: 0, unknown: 1)

    /// Left out though it had been asked for before, for these reasons, it says nothing of the run: a newer push took its
    /// place, or somebody ended the run.
    package static let leftOutSilently: [SuppressionReason] = [.coalesced, .cancelled]

    /// What one settlement adds; nil: it is no end, or not one that says anything of the run.
    package init?(_ settlement: Settlement) {
        switch settlement.verdict {
        case .accepted: self.init(answered: 1)
        case .rejected where settlement.status == 410: self.init(answered: 1, gone: 1)
        // APNs was in trouble, as often as it was asked: that says nothing of the run.
        case .rejected where settlement.status == 429 || settlement.status >= 500: self = .lost
        case .rejected, .suppressed(.payloadTooLarge): self.init(answered: 1, failed: 1)
        case .unknown: self = .lost
        // It was asked for, and will not be again: nobody knows what the answer would have been.
        case .suppressed(let reason) where settlement.attempt > 0 && !Self.leftOutSilently.contains(reason):
            self = .lost
        case .retry, .suppressed: return nil
        }
    }
}

/// Those of a stage who got one text, in one environment: a fault may be theirs alone.
package struct StageGroup: Hashable, Sendable, Codable {
    /// Texts that are judged by themselves; those behind them are judged together, in each environment.
    package static let localesMax = 98
    /// Groups that are judged, at most: in each environment so many texts, the others, and those before any text was
    /// chosen.
    package static let judgedMax = 2 * (localesMax + 2)

    package var environment: PushEnvironment
    /// Of the template's locales; nil: before any was chosen. ``localesMax`` in a ``judged`` group: all from there on.
    package var locale: Int?

    /// The one that it is judged with.
    package var judged: StageGroup {
        StageGroup(environment: environment, locale: locale.map { min($0, Self.localesMax) })
    }

    package init(environment: PushEnvironment, locale: Int?) {
        self.environment = environment
        self.locale = locale
    }
}

package enum StageVerdict: String, Hashable, Sendable, Codable, CaseIterable {
    /// Shown to fail less than is put up with.
    case go
    /// Shown to fail more.
    case halt
    /// Neither, or too little was answered. It waits for a person: silence is never success.
    case undecided
}

/// When a stage is asked whether it may go.
package enum StageLook: String, Hashable, Sendable, Codable {
    /// Deliveries of the stage still wait for a later wave, or for a cap: the stage is asked again after them.
    case interim
    /// Nothing more will be answered. Each stage has one such look.
    case last
}

/// A verdict with the counts it came from, so that anybody can come to it again. It is stored as JSON: its coding keys never
/// change.
package struct StageDecision: Hashable, Sendable, Codable {
    package var verdict: StageVerdict
    package var at: Timestamp
    /// What was answered when it was decided; of ``group`` alone where there is one.
    package var answers: StageAnswers
    /// Of the same, those in flight then, which counted as not refused; nil: none.
    package var unanswered: Int?
    /// Deliveries left out before they were ever sent, by the word of the reason; nil: none.
    package var leftOut: [String: Int]?
    /// Of the answers' ``StageAnswers/unknown``, those that ended with 429 or a 5xx of APNs. `nil`: not counted, as in a
    /// halt, in a stage without unknown ones, and in a verdict of an earlier version.
    package var apnsErrors: Int?
    /// The share of failures put up with; with ``isAboutGone`` of devices that are gone.
    package var tolerated: Double
    package var isAboutGone: Bool
    /// Nil: the whole stage.
    package var group: StageGroup?
    /// The share of gone devices that is tolerated, where some were gone at the end of a stage; `nil` for a halt, for a stage
    /// without such devices, and for a verdict of an earlier version.
    package var goneTolerated: Double?
    /// By which test *go* was decided; `nil` for a halt, and for a verdict of an earlier version.
    package var look: StageLook?

    private enum CodingKeys: String, CodingKey {
        case verdict = "verdict", at = "at", answers = "answers", unanswered = "unanswered", leftOut = "leftOut"
        case tolerated = "tolerated", isAboutGone = "isAboutGone", group = "group", look = "look"
        case goneTolerated = "goneTolerated", apnsErrors = "apnsErrors"
    }

    package init(
        _ verdict: StageVerdict, at moment: Timestamp, _ answers: StageAnswers, unanswered: Int = 0,
        tolerated: Double, isAboutGone: Bool = false, group: StageGroup? = nil, look: StageLook? = nil
    ) {
        self.look = look
        self.verdict = verdict
        at = moment
        self.answers = answers
        self.unanswered = unanswered > 0 ? unanswered : nil
        self.tolerated = tolerated
        self.isAboutGone = isAboutGone
        self.group = group
    }
}

/// How far one stage of a run has come.
package struct StageRecord: Hashable, Sendable {
    /// Index into the campaign's stages.
    package var index: Int
    /// Deliveries frozen into it that were to be sent.
    package var size: Int
    package var openedAt: Timestamp?
    package var answers: StageAnswers
    /// The share of devices found gone that is put up with.
    package var goneTolerated: Double?
    package var decision: StageDecision?
    /// Of answers that came when it had been let go: those of later waves. Never but to halt.
    package var afterGo: StageDecision?
    /// Who let it begin, where it needs that.
    package var approvedBy: String?
    /// Who let the run go on in spite of the verdict.
    package var releasedBy: String?

    package init(
        index: Int, size: Int = 0, openedAt: Timestamp? = nil, answers: StageAnswers = StageAnswers(),
        goneTolerated: Double? = nil, decision: StageDecision? = nil, afterGo: StageDecision? = nil,
        approvedBy: String? = nil, releasedBy: String? = nil
    ) {
        self.index = index
        self.size = size
        self.openedAt = openedAt
        self.answers = answers
        self.goneTolerated = goneTolerated
        self.decision = decision
        self.afterGo = afterGo
        self.approvedBy = approvedBy
        self.releasedBy = releasedBy
    }

    /// It did not prove itself, or not any more, and nobody has let the run go on.
    package var isHalted: Bool {
        releasedBy == nil && (afterGo != nil || decision.map { $0.verdict != .go } ?? false)
    }

    /// Whether its next answers may halt the run. What somebody has let go on in spite of its verdict is theirs to watch.
    package var isJudged: Bool { releasedBy == nil && afterGo == nil && decision.map { $0.verdict == .go } ?? true }
}

/// As a share is stored: a whole number, which every store gives back as it was.
extension StageRecord {
    package static func millionths(ofShare share: Double) -> Int { Int((share * 1_000_000).rounded()) }

    package static func share(ofMillionths number: Int) -> Double { Double(number) / 1_000_000 }
}
