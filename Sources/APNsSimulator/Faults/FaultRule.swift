/// A deliberate fault: the affected requests and the action.
package struct FaultRule: Hashable, Sendable {
    package var when: FaultCondition
    package var moment: Moment
    package var action: FaultAction

    package enum Moment: Hashable, Sendable {
        /// At a connect, before TLS, and not at a request. `close` drops the connect, `silence` leaves it unanswered,
        /// and other actions have no effect. The condition counts connects and ignores tokens.
        case connect
        /// Before the checks of the request, which is then usually not processed.
        case beforeChecks
        /// After the checks, which may have accepted the request. The client does not learn the result.
        case afterChecks
    }

    package init(when: FaultCondition, moment: Moment = .beforeChecks, action: FaultAction) {
        self.when = when
        self.moment = moment
        self.action = action
    }

    /// Returns a rule that checks a push, usually accepts it, and loses the response. `action` is `close`, `reset`,
    /// `silence`, `silentConnection` or `outage`. The client cannot know whether such a push was accepted.
    package static func answerLost(_ when: FaultCondition, by action: FaultAction = .close) -> FaultRule {
        FaultRule(when: when, moment: .afterChecks, action: action)
    }

    /// Returns a rule that closes a new connection before TLS is established.
    package static func droppedConnect(_ when: FaultCondition) -> FaultRule {
        FaultRule(when: when, moment: .connect, action: .close)
    }
}

/// The requests that a rule applies to. A token, an environment and a time restrict the requests if they are set. The
/// first `skip` matching requests are left out, and `pick` chooses among the others.
package struct FaultCondition: Hashable, Sendable {
    package enum Pick: Hashable, Sendable {
        case every(Int)
        /// The matching request with this number, from 1.
        case number(Int)
        /// A random share from 0 to 1. The options' seed determines which requests it picks.
        case rate(Double)
    }

    /// The token's bytes.
    package var token: [UInt8]?
    package var environment: SimulatorEnvironment?
    package var pick: Pick
    /// The number of matching requests that are left out first.
    package var skip = 0
    /// The number of faults after which the rule ends. `nil` for no end.
    package var timesMax: Int?
    /// The start of the rule in milliseconds after the script was set, by the simulator's clock.
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

    /// Restricts the condition to a time range, in milliseconds after the script was set.
    package func during(_ time: Range<Int64>) -> FaultCondition {
        var condition = self
        condition.fromMs = time.lowerBound
        condition.untilMs = time.upperBound
        return condition
    }
}

/// The action of a fault. ``FaultRule/Moment`` describes how the moment changes it.
package enum FaultAction: Hashable, Sendable {
    /// A response with any status and reason, known or not. `timestamp` is in milliseconds since 1970. `retryAfter` is
    /// the header's value as sent.
    case answer(status: Int, reason: String, timestamp: Int64? = nil, retryAfter: String? = nil)
    /// A response with a body that is not JSON, as sent by a load balancer in front of the service.
    case page(status: Int, body: String, retryAfter: String? = nil)
    /// A delayed response. The request is checked as usual.
    case delay(milliseconds: Int)
    /// No response. The stream stays open.
    case silence
    /// No more output on this connection, not even PING acknowledgements. TCP stays up.
    case silentConnection
    /// RST_STREAM with an error code of RFC 9113 section 7: 2 INTERNAL_ERROR, 7 REFUSED_STREAM, 8 CANCEL.
    case reset(code: UInt32)
    /// A reset with INTERNAL_ERROR after the headers of the response. The request is checked as usual.
    case cutAnswer
    /// GOAWAY. Streams above `lastStream` are not processed, which may include this request. Other streams get
    /// responses as usual, or are lost if the connection `closes` immediately. `text` replaces Apple's JSON. With
    /// `isTwice`, a GOAWAY with the highest stream precedes it, as in an announced shutdown.
    case goAway(
        lastStream: LastStream, reason: String?, text: String? = nil, isTwice: Bool = false, closes: Bool = false)
    /// SETTINGS with this number of streams, for a time or permanently. The request is checked as usual.
    case streamLimit(Int, forMilliseconds: Int? = nil)
    /// The end of the connection with no GOAWAY.
    case close
    /// The end of every connection of this environment, with no GOAWAY. Its port then refuses connects for this time.
    case outage(milliseconds: Int)

    package enum LastStream: String, Hashable, Sendable, CaseIterable {
        /// 0: nothing was processed.
        case none
        /// The last stream before this request.
        case before
        /// The last stream of the older half of the requests that wait for responses. This request is one of them.
        case middle
        /// This request.
        case this
        /// 2^31-1: everything that was sent may have been processed.
        case all
    }

    /// REFUSED_STREAM: the request was not processed and may be sent again.
    package static var refuseStream: FaultAction { .reset(code: 7) }

    /// The name for the log.
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

    /// Whether no response follows.
    var withholdsAnswer: Bool {
        switch self {
        case .silence, .silentConnection, .reset, .close, .outage: true
        case .goAway(_, _, _, _, let closes): closes
        case .answer, .page, .delay, .cutAnswer, .streamLimit: false
        }
    }
}
