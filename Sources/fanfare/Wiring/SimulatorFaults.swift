import APNsSimulator
import CampaignFiles
import Model

extension FaultRule {
    /// A rule of a fault script, in the simulator's words.
    init(_ written: ScriptedFault) {
        let pick: FaultCondition.Pick =
            switch written.pick {
            case .every(let count): .every(count)
            case .number(let number): .number(number)
            case .rate(let rate): .rate(rate)
            }
        var when = FaultCondition(
            pick: pick, token: written.token?.bytes,
            environment: written.environment.map { $0 == .production ? .production : .sandbox },
            timesMax: written.timesMax)
        when.skip = written.skip
        when.fromMs = written.from?.wholeMilliseconds
        when.untilMs = written.until?.wholeMilliseconds
        let (moment, action) = Self.action(written.action)
        self.init(when: when, moment: moment, action: action)
    }

    private static func action(_ written: ScriptedFault.Action) -> (Moment, FaultAction) {
        switch written {
        case .answer(let response): (.beforeChecks, action(response))
        case .answerLost(let loss): (.afterChecks, action(loss))
        case .delay(let delay): (.beforeChecks, .delay(milliseconds: Int(delay.wholeMilliseconds)))
        case .silence(let extent): (.beforeChecks, extent == .stream ? .silence : .silentConnection)
        case .reset(let code): (.beforeChecks, .reset(code: code.number))
        case .cutAnswer: (.beforeChecks, .cutAnswer)
        case .goAway(let goAway): (.beforeChecks, action(goAway))
        case .streamLimit(let streams, let time):
            (.beforeChecks, .streamLimit(streams, forMilliseconds: time.map { Int($0.wholeMilliseconds) }))
        case .close: (.beforeChecks, .close)
        case .outage(let time): (.beforeChecks, .outage(milliseconds: Int(time.wholeMilliseconds)))
        case .connect(let connect): (.connect, connect == .drop ? .close : .silence)
        }
    }

    private static func action(_ response: ScriptedFault.Response) -> FaultAction {
        if let body = response.body { return .page(status: response.status, body: body) }
        return .answer(
            status: response.status, reason: response.reason ?? "", timestamp: response.timestamp.map(Int64.init))
    }

    private static func action(_ loss: ScriptedFault.Loss) -> FaultAction {
        switch loss {
        case .close: .close
        case .reset: .reset(code: ScriptedFault.Code.internalError.number)
        case .silence: .silence
        case .silentConnection: .silentConnection
        }
    }

    private static func action(_ goAway: ScriptedFault.GoAway) -> FaultAction {
        let last: FaultAction.LastStream =
            switch goAway.lastStream {
            case .none: .none
            case .before: .before
            case .middle: .middle
            case .this: .this
            case .all: .all
            }
        return .goAway(
            lastStream: last, reason: goAway.reason, text: goAway.text, isTwice: goAway.isTwice, closes: goAway.closes)
    }
}

extension ScriptedFault.Code {
    /// RFC 9113 section 7.
    fileprivate var number: UInt32 {
        switch self {
        case .noError: 0
        case .protocolError: 1
        case .internalError: 2
        case .refusedStream: 7
        case .cancel: 8
        case .enhanceYourCalm: 11
        }
    }
}
