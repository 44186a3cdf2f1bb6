import HTTP2

/// One request under examination: what the checks look at. Lives inside one call, under the state's lock.
struct Inspection {
    let request: IncomingRequest
    let connection: PushConnection
    let policy: SimulatorPolicy
    let state: SimulatorState
    let nowMs: Int64

    /// Found by the checks that need them, for those that come after.
    var pushType: PushType?
    var topic: TopicTable.Topic?
    var device: SimulatorRegistry.Device?

    init(
        of request: IncomingRequest, on connection: PushConnection, policy: SimulatorPolicy, state: SimulatorState,
        nowMs: Int64
    ) {
        self.request = request
        self.connection = connection
        self.policy = policy
        self.state = state
        self.nowMs = nowMs
    }

    typealias Check = @Sendable (inout Inspection) -> Verdict?

    /// The order of `apns-protocol.md` section 11; Apple's own is not known. The first that objects decides.
    static let inOrder: [Check] = [
        headerListFits, methodIsPost, pathIsDevice, headersComeOnce,
        credentialsHold,
        idIsCanonical, expirationIsDecimal, priorityIsKnown, pushTypeIsKnown, collapseIDFits,
        topicIsGiven, topicIsKnown, topicIsAllowed, topicFitsPushType,
        backgroundIsLowPriority, backgroundIsSilent,
        tokenIsHex, tokenIsRegistered, tokenIsForTopic, tokenIsActive,
        payloadIsGiven, payloadFits,
    ]

    mutating func verdict() -> Verdict {
        for check in Self.inOrder {
            if let objection = check(&self) { return objection }
        }
        return .accepted
    }
}
