/// The counts of final responses to a stage's deliveries, from APNs or from the renderer in its place.
package struct StageAnswers: Hashable, Sendable, Codable {
    /// Final responses, including rejections.
    package var answered = 0
    /// Rejections that do not concern one device: all except 410.
    package var failed = 0
    /// 410 responses: the app is no longer installed. They are compared with this audience's own history.
    package var gone = 0
    /// Deliveries with an unknown outcome that are not retried.
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

    /// A delivery with an unknown outcome.
    package static let lost = StageAnswers(answered: 0, unknown: 1)

    /// Creates the counts of one settlement. Returns `nil` if the settlement is not final or is no evidence about the
    /// run.
    package init?(_ settlement: Settlement) {
        switch settlement.verdict {
        case .accepted: self.init(answered: 1)
        case .rejected where settlement.status == 410: self.init(answered: 1, gone: 1)
        // APNs had a problem on every attempt, which is no evidence about the run.
        case .rejected where settlement.status == 429 || settlement.status >= 500: self = .lost
        case .rejected, .suppressed(.payloadTooLarge): self.init(answered: 1, failed: 1)
        case .unknown: self = .lost
        // A request was started and will not be repeated, so its response remains unknown.
        case .suppressed(let reason) where settlement.attempt > 0 && !reason.isSilent:
            self = .lost
        case .retry, .suppressed: return nil
        }
    }
}

/// The deliveries of a stage with the same text in the same environment. A fault may affect only such a group.
package struct StageGroup: Hashable, Sendable, Codable {
    /// The maximum number of texts that are judged separately. The remaining texts are judged together, in each
    /// environment.
    package static let localesMax = 98
    /// The maximum number of judged groups. Each environment has this many texts, the remaining texts, and the
    /// deliveries without a chosen text.
    package static let judgedMax = 2 * (localesMax + 2)

    package var environment: PushEnvironment
    /// An index into the template's locales. `nil` before a text is chosen. In a ``judged`` group, ``localesMax``
    /// stands for all texts from there on.
    package var locale: Int?

    /// The group that the deliveries are judged with.
    package var judged: StageGroup {
        StageGroup(environment: environment, locale: locale.map { min($0, Self.localesMax) })
    }

    package init(environment: PushEnvironment, locale: Int?) {
        self.environment = environment
        self.locale = locale
    }
}

package enum StageVerdict: String, Hashable, Sendable, Codable, CaseIterable {
    /// The failure rate is shown to be below the tolerated one.
    case go
    /// The failure rate is shown to be above the tolerated one.
    case halt
    /// Neither is shown, or too few responses arrived. The stage waits for a person, because missing responses do not
    /// count as success.
    case undecided
}

/// The kind of an evaluation of a stage.
package enum StageLook: String, Hashable, Sendable, Codable {
    /// Deliveries of the stage still wait for a later wave or for a cap. The stage is evaluated again after them.
    case interim
    /// No more responses will arrive. Each stage has one such evaluation.
    case last
}

/// A verdict with the counts that it is based on, so that it can be reproduced. It is stored as JSON: its coding keys
/// never change.
package struct StageDecision: Hashable, Sendable, Codable {
    package var verdict: StageVerdict
    package var at: Timestamp
    /// When the hold after the verdict began, by the wall clock as it is set now. `nil` if the clock was not set since
    /// ``at``.
    package var heldFrom: Timestamp?
    /// The responses at the time of the decision. If ``group`` is set, they are the responses of that group only.
    package var answers: StageAnswers
    /// The requests in flight at that time, which counted as not rejected. `nil` for none.
    package var unanswered: Int?
    /// Deliveries suppressed before any request, by the reason's raw value. `nil` for none.
    package var leftOut: [String: Int]?
    /// The part of ``StageAnswers/unknown`` that ended with 429 or a 5xx of APNs. `nil` if not counted: in a halt, in a
    /// stage without unknown outcomes, and in a verdict of an earlier version.
    package var apnsErrors: Int?
    /// The tolerated share of failures. With ``isAboutGone``, the tolerated share of gone devices.
    package var tolerated: Double
    package var isAboutGone: Bool
    /// `nil` for the whole stage.
    package var group: StageGroup?
    /// The tolerated share of gone devices, if some were gone at the end of a stage. `nil` for a halt, for a stage
    /// without such devices, and for a verdict of an earlier version.
    package var goneTolerated: Double?
    /// The test that decided *go*. `nil` for a halt, and for a verdict of an earlier version.
    package var look: StageLook?
    /// The comparison of the opens at the end of the hold. `nil` before it, and for a stage that does not compare them.
    package var opens: StageOpens?
    /// The decision which variant the rest gets. `nil` before the end of the hold, and for a stage that decides on
    /// none.
    package var variants: VariantDecision?

    private enum CodingKeys: String, CodingKey {
        case verdict = "verdict", at = "at", answers = "answers", unanswered = "unanswered", leftOut = "leftOut"
        case tolerated = "tolerated", isAboutGone = "isAboutGone", group = "group", look = "look"
        case goneTolerated = "goneTolerated", apnsErrors = "apnsErrors", heldFrom = "heldFrom"
        case opens = "opens", variants = "variants"
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

    /// Returns when a hold of this length ends.
    package func end(of hold: Duration) -> Timestamp { (heldFrom ?? at) + hold }
}

/// The progress of one stage of a run.
package struct StageRecord: Hashable, Sendable {
    /// An index into the campaign's stages.
    package var index: Int
    /// The number of deliveries that were frozen into the stage to be sent.
    package var size: Int
    package var openedAt: Timestamp?
    package var answers: StageAnswers
    /// The tolerated share of gone devices.
    package var goneTolerated: Double?
    package var decision: StageDecision?
    /// The verdict on the responses of later waves, which arrived after the verdict *go*. It is always a halt.
    package var afterGo: StageDecision?
    /// The person who approved the stage's start, if it needs approval.
    package var approvedBy: String?
    /// The person who resumed the run despite the verdict.
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

    /// Whether the stage did not pass, or no longer passes, and no person has resumed the run.
    package var isHalted: Bool {
        releasedBy == nil && (afterGo != nil || decision.map { $0.verdict != .go } ?? false)
    }

    /// Whether a person has to choose which variant the rest gets.
    package var awaitsVariant: Bool { decision?.variants.map { $0.variant == nil } ?? false }

    /// Whether the stage's next responses may halt the run. After a person resumes the run despite a verdict, they no
    /// longer do.
    package var isJudged: Bool { releasedBy == nil && afterGo == nil && decision.map { $0.verdict == .go } ?? true }
}

/// The stored form of a share: a whole number, which every store returns exactly.
extension StageRecord {
    package static func millionths(ofShare share: Double) -> Int { Int((share * 1_000_000).rounded()) }

    package static func share(ofMillionths number: Int) -> Double { Double(number) / 1_000_000 }
}
