/// One thing that goes wrong on purpose: for which requests, and what.
package struct FaultRule: Hashable, Sendable {
    package var when: FaultCondition
    package var moment: Moment
    package var action: FaultAction

    package enum Moment: Hashable, Sendable {
        /// At a connect instead of a request, before TLS: `close` drops it, `silence` leaves it without an answer, other
        /// actions do nothing. The condition counts connects and asks for no token.
        case connect
        /// Instead of looking at the request, which is then mostly not processed.
        case beforeChecks
        /// After it was judged, and perhaps accepted: the client does not learn of it.
        case afterChecks
    }

    package init(when: FaultCondition, moment: Moment = .beforeChecks, action: FaultAction) {
        self.when = when
        self.moment = moment
        self.action = action
    }

    /// The push is judged, mostly accepted, and the answer never arrives: by `close` of the connection, `reset` of the
    /// stream, `silence`, `silentConnection` or `outage`. The case in which a client must not guess.
    package static func answerLost(_ when: FaultCondition, by action: FaultAction = .close) -> FaultRule {
        FaultRule(when: when, moment: .afterChecks, action: action)
    }

    /// The connect ends before TLS is agreed.
    package static func droppedConnect(_ when: FaultCondition) -> FaultRule {
        FaultRule(when: when, moment: .connect, action: .close)
    }
}

/// Which requests a rule takes: those for the token and environment within the time, if given; of these, without the
/// first `skip`, the picked ones.
package struct FaultCondition: Hashable, Sendable {
    package enum Pick: Hashable, Sendable {
        case every(Int)
        /// From 1.
        case number(Int)
        /// 0...1, by the seed of the options.
        case rate(Double)
    }

    /// Bytes.
    package var token: [UInt8]?
    package var environment: SimulatorEnvironment?
    package var pick: Pick
    /// So many that match are left alone first.
    package var skip = 0
    /// The rule ends after so many.
    package var timesMax: Int?
    /// By the simulator's clock, counted from when the script was set.
    package var fromMs: Int64?
    package var untilMs: Int64?

    package init(
        pick: Pick = .every(1), token: [UInt8]? = nil, environment: SimulatorEnvironment? = nil, timesMax: Int? = nil
    ) {
        self.pick = pick
        self.token = token
        self.environment = environment
        self.timesMax = timesMax
    }

    package static var always: FaultCondition { FaultCondition() }
    package static func token(_ token: [UInt8]) -> FaultCondition { FaultCondition(token: token) }
    package static func number(_ number: Int) -> FaultCondition { FaultCondition(pick: .number(number)) }
    package static func every(_ count: Int) -> FaultCondition { FaultCondition(pick: .every(count)) }
    package static func rate(_ rate: Double) -> FaultCondition { FaultCondition(pick: .rate(rate)) }

    package func times(_ count: Int) -> FaultCondition {
        var condition = self
        condition.timesMax = count
        return condition
    }

    package func skipping(_ count: Int) -> FaultCondition {
        var condition = self
        condition.skip = count
        return condition
    }

    /// Milliseconds since the script was set.
    package func during(_ time: Range<Int64>) -> FaultCondition {
        var condition = self
        condition.fromMs = time.lowerBound
        condition.untilMs = time.upperBound
        return condition
    }
}

/// What goes wrong. What a rule's ``FaultRule/Moment`` makes of it is said there.
package enum FaultAction: Hashable, Sendable {
    /// Any status and reason, known or not; `timestamp` in milliseconds since 1970, `retryAfter` the header's value as it
    /// is sent.
    case answer(status: Int, reason: String, timestamp: Int64? = nil, retryAfter: String? = nil)
    /// A body that is no JSON, as a balancer in front of the service sends.
    case page(status: Int, body: String, retryAfter: String? = nil)
    /// The request is judged as usual and answered later.
    case delay(milliseconds: Int)
    /// Never an answer; the stream stays open.
    case silence
    /// Nothing at all comes any more on this connection, PING acknowledgements included; TCP stays up.
    case silentConnection
    /// RST_STREAM with an error code of RFC 9113 section 7: 2 INTERNAL_ERROR, 7 REFUSED_STREAM, 8 CANCEL.
    case reset(code: UInt32)
    /// The request is judged as usual; after the headers of its answer the stream is reset with INTERNAL_ERROR.
    case cutAnswer
    /// GOAWAY. What `lastStream` does not cover is not processed, this request included; what it covers is answered as
    /// usual, or lost with the connection when that `closes` at once. `text` in place of Apple's JSON. `isTwice`: one with
    /// the highest stream goes before it, as in a shutdown that was announced.
    case goAway(
        lastStream: LastStream, reason: String?, text: String? = nil, isTwice: Bool = false, closes: Bool = false)
    /// SETTINGS with this many streams, for a while or for good; the request is judged as usual.
    case streamLimit(Int, forMilliseconds: Int? = nil)
    /// The connection ends without a word.
    case close
    /// Every connection of this environment ends without a word, and its port refuses new ones for so long.
    case outage(milliseconds: Int)

    package enum LastStream: String, Hashable, Sendable, CaseIterable {
        /// 0: nothing was processed.
        case none
        /// The last one before this request.
        case before
        /// The older half of the requests that wait for their answers, this one included.
        case middle
        /// This request.
        case this
        /// 2^31-1: everything that was sent may have been processed.
        case all
    }

    /// REFUSED_STREAM: not processed, may be sent again freely.
    package static var refuseStream: FaultAction { .reset(code: 7) }

    /// For the log.
    package var name: String {
        switch self {
        case .answer: "answer"
        case .page: "page"
        case .delay: "delay"
        case .silence: "silence"
        case .silentConnection: "silent_connection"
        case .reset: "reset"
        case .cutAnswer: "cut_answer"
        case .goAway: "goaway"
        case .streamLimit: "stream_limit"
        case .close: "close"
        case .outage: "outage"
        }
    }

    /// No answer follows.
    var withholdsAnswer: Bool {
        switch self {
        case .silence, .silentConnection, .reset, .close, .outage: true
        case .goAway(_, _, _, _, let closes): closes
        case .answer, .page, .delay, .cutAnswer, .streamLimit: false
        }
    }
}
