import HTTP2

/// What to do with a request: the answer, and what the fault script makes of it.
struct Decision: Sendable {
    var verdict: Verdict
    /// Nil: the request's own id is given back.
    var madeID: MessageID?
    var delayMs = 0
    /// In place of the answer, or besides it.
    var fault: FaultAction?
    /// In the log, from 1.
    var sequence = 0

    /// The push was judged, and its client never hears of it.
    var losesAnswer: Bool { verdict.status != 0 && fault?.withholdsAnswer == true }

    mutating func take(_ action: FaultAction?) {
        guard let action else { return }
        fault = action
        switch action {
        case .answer(let status, let reason, let timestamp):
            let isSilent = status == 200 || reason.isEmpty
            verdict = Verdict(status: status, reason: isSilent ? nil : reason, timestamp: timestamp)
        case .page(let status, let body): verdict = Verdict(status: status, page: body)
        case .delay(let milliseconds): delayMs += milliseconds
        case .silence, .silentConnection, .reset, .cutAnswer, .goAway, .streamLimit, .close, .outage: break
        }
    }

    /// A fault that comes before the checks may leave nothing to judge, and mostly leaves the request untouched.
    mutating func isSettledByFault(_ connection: PushConnection, _ request: IncomingRequest) -> Bool {
        switch fault {
        case .answer, .page: return true
        case .delay, .cutAnswer, .streamLimit, nil: return false
        case .silence, .silentConnection, .reset, .close, .outage: break
        case .goAway(let last, _, _, _, _):
            if connection.lastStream(of: last, at: request.stream) >= request.stream { return false }
        }
        leaveUntouched()
        return true
    }

    /// The fault came before anybody looked at the request.
    mutating func leaveUntouched() {
        verdict = Verdict(status: 0, reason: nil)
    }
}
