import HTTP2

/// The data of one request that the checks examine. It exists only during one call, under the state's lock.
struct Inspection {
    let request: IncomingRequest
    let connection: PushConnection
    let policy: SimulatorPolicy
    let state: SimulatorState
    let nowMs: Int64

    /// The results of earlier checks, for later checks.
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

    /// The checks in the order of `ProviderProtocol` section 11. Apple's own order is unknown. The first check that
    /// fails decides.
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

/// The headers that the simulator reads. The raw value is the index in the vocabulary.
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

    /// Returns a header's value as text, for logs.
    func text(_ header: RequestHeader) -> String? {
        value(header.rawValue).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The reasons that the simulator itself gives, with their status (`ProviderProtocol` sections 3 and 7).
package enum SimulatorReason: String, Hashable, Sendable, CaseIterable {
    case badCertificateEnvironment = "BadCertificateEnvironment"
    case badCollapseID = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badEnvironmentKeyIdInToken = "BadEnvironmentKeyIdInToken"
    case badExpirationDate = "BadExpirationDate"
    case badMessageID = "BadMessageId"
    case badPath = "BadPath"
    case badPriority = "BadPriority"
    case badTopic = "BadTopic"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case duplicateHeaders = "DuplicateHeaders"
    case expiredProviderToken = "ExpiredProviderToken"
    case invalidProviderToken = "InvalidProviderToken"
    case invalidPushType = "InvalidPushType"
    case methodNotAllowed = "MethodNotAllowed"
    case missingDeviceToken = "MissingDeviceToken"
    case missingProviderToken = "MissingProviderToken"
    case missingTopic = "MissingTopic"
    case payloadEmpty = "PayloadEmpty"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    case topicDisallowed = "TopicDisallowed"
    case unregistered = "Unregistered"
    case unrelatedKeyIdInToken = "UnrelatedKeyIdInToken"

    package var status: Int {
        switch self {
        case .badPath: 404
        case .methodNotAllowed: 405
        case .unregistered: 410
        case .payloadTooLarge: 413
        case .tooManyProviderTokenUpdates: 429
        case .badCertificateEnvironment, .badEnvironmentKeyIdInToken, .expiredProviderToken, .invalidProviderToken,
            .missingProviderToken, .unrelatedKeyIdInToken:
            403
        default: 400
        }
    }
}

/// The outcome of a request.
struct Verdict: Hashable, Sendable {
    var status: Int
    var reason: String?
    /// The time in milliseconds since 1970, with 410.
    var timestamp: Int64?
    /// A body that is not JSON.
    var page: String?
    /// The value of `retry-after`.
    var retryAfter: String?

    static let accepted = Verdict(status: 200, reason: nil)
    /// The header list is longer than announced. The status is from RFC 6585. The response of APNs is unknown.
    static let headersTooLarge = Verdict(status: 431, reason: nil)

    init(status: Int, reason: String?, timestamp: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }

    init(status: Int, page: String) {
        self.status = status
        self.page = page
    }

    init(_ reason: SimulatorReason, timestamp: Int64? = nil) {
        self.init(status: reason.status, reason: reason.rawValue, timestamp: timestamp)
    }

    var isAccepted: Bool { status == 200 }

    /// The body: `{"reason":"...","timestamp":n}`, or the page. Empty for a response with no reason.
    var body: [UInt8] {
        if let page { return Array(page.utf8) }
        guard let reason else { return [] }
        var line = JSONLine()
        line.add("reason", reason)
        line.add("timestamp", timestamp)
        return line.finished()
    }
}
