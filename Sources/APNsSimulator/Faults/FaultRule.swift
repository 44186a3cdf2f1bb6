/// One thing that goes wrong on purpose: for which requests, and what.
package struct FaultRule: Hashable, Sendable {
    package var when: FaultCondition
    package var moment: Moment
    package var action: FaultAction

    package enum Moment: Hashable, Sendable {
        /// Instead of looking at the request, which is then not processed.
        case beforeChecks
        /// After it was judged, and perhaps accepted: the client does not learn of it.
        case afterChecks
    }

    package init(when: FaultCondition, moment: Moment = .beforeChecks, action: FaultAction) {
        self.when = when
        self.moment = moment
        self.action = action
    }
}

/// Which requests a rule takes: those for the token and environment, if given; of these the picked ones.
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
    /// The rule ends after so many.
    package var timesMax: Int?

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
}

package enum FaultAction: Hashable, Sendable {
    /// Any status and reason, known or not.
    case answer(status: Int, reason: String)
    /// The request is judged as usual and answered later.
    case delay(milliseconds: Int)
    /// Never an answer; the stream stays open.
    case silence
    /// RST_STREAM with an error code of RFC 9113 section 7: 2 INTERNAL_ERROR, 7 REFUSED_STREAM, 8 CANCEL.
    case reset(code: UInt32)
    /// GOAWAY; the request is judged and answered as usual if `lastStream` covers it.
    case goAway(lastStream: LastStream, reason: String?)
    /// The connection ends without a word.
    case close

    package enum LastStream: String, Hashable, Sendable {
        /// 0: nothing was processed.
        case none
        /// The last one before this request.
        case before
        /// This request.
        case this
        /// 2^31-1: everything that was sent may have been processed.
        case all
    }

    /// For the log.
    package var name: String {
        switch self {
        case .answer: "answer"
        case .delay: "delay"
        case .silence: "silence"
        case .reset: "reset"
        case .goAway: "goaway"
        case .close: "close"
        }
    }
}
