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
