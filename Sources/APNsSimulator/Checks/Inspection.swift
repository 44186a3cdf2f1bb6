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

    /// The order of `ProviderProtocol` section 11; Apple's own is not known. The first that objects decides.
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

/// The headers that the simulator looks at; the raw value is the index in the vocabulary.
enum RequestHeader: Int, CaseIterable {
    case method, path, authorization, topic, pushType, id, expiration, priority, collapseID, contentType

    private var name: String {
        switch self {
        case .method: ":method"
        case .path: ":path"
        case .authorization: "authorization"
        case .topic: "apns-topic"
        case .pushType: "apns-push-type"
        case .id: "apns-id"
        case .expiration: "apns-expiration"
        case .priority: "apns-priority"
        case .collapseID: "apns-collapse-id"
        case .contentType: "content-type"
        }
    }

    static let vocabulary = HeaderVocabulary(allCases.map(\.name))
}

extension IncomingRequest {
    subscript(_ header: RequestHeader) -> UnsafeRawBufferPointer? { value(header.rawValue) }

    /// For logs.
    func text(_ header: RequestHeader) -> String? {
        value(header.rawValue).map { String(decoding: $0, as: UTF8.self) }
    }
}
