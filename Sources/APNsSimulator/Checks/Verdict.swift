/// The reasons the simulator gives of itself, with their status (`ProviderProtocol` sections 3 and 7).
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

/// What becomes of a request.
struct Verdict: Hashable, Sendable {
    var status: Int
    var reason: String?
    /// Milliseconds since 1970, with 410.
    var timestamp: Int64?
    /// A body that is no JSON.
    var page: String?

    static let accepted = Verdict(status: 200, reason: nil)
    /// The header list is longer than announced. RFC 6585; what APNs answers is not known.
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

    /// `{"reason":"...","timestamp":n}`, or the page; nothing for an answer without reason.
    var body: [UInt8] {
        if let page { return Array(page.utf8) }
        guard let reason else { return [] }
        var line = JSONLine()
        line.add("reason", reason)
        line.add("timestamp", timestamp)
        return line.finished()
    }
}
