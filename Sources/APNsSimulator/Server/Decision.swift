/// What to do with a request: the answer, and what the fault script makes of it.
struct Decision: Sendable {
    var verdict: Verdict
    /// Nil: the request's own id is given back.
    var madeID: MessageID?
    var delayMs = 0
    /// In place of the answer; `goAway` besides it.
    var fault: FaultAction?
}
