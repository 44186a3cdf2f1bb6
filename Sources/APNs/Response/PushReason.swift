/// The `reason` of an error answer (`ProviderProtocol` sections 3 and 7). Unknown ones keep their text.
package enum PushReason: Hashable, Sendable, CustomStringConvertible {
    case badCertificate, badCertificateEnvironment, badCollapseId, badDeviceToken, badEnvironmentKeyIdInToken
    case badExpirationDate, badMessageId, badPath, badPriority, badTopic, deviceTokenNotForTopic, duplicateHeaders
    case expiredProviderToken, expiredToken, forbidden, idleTimeout, internalServerError, invalidProviderToken
    case invalidPushType, methodNotAllowed, missingDeviceToken, missingProviderToken, missingTopic, payloadEmpty
    case payloadTooLarge, serviceUnavailable, shutdown, tooManyProviderTokenUpdates, tooManyRequests
    case topicDisallowed, unregistered, unrelatedKeyIdInToken
    case other(String)

    /// As spelled on the wire, with the status it comes with.
    package static let known: [(name: String, status: Int, reason: PushReason)] = [
        ("BadCertificate", 403, .badCertificate), ("BadCertificateEnvironment", 403, .badCertificateEnvironment),
        ("BadCollapseId", 400, .badCollapseId), ("BadDeviceToken", 400, .badDeviceToken),
        ("BadEnvironmentKeyIdInToken", 403, .badEnvironmentKeyIdInToken),
        ("BadExpirationDate", 400, .badExpirationDate), ("BadMessageId", 400, .badMessageId),
        ("BadPath", 404, .badPath), ("BadPriority", 400, .badPriority), ("BadTopic", 400, .badTopic),
        ("DeviceTokenNotForTopic", 400, .deviceTokenNotForTopic), ("DuplicateHeaders", 400, .duplicateHeaders),
        ("ExpiredProviderToken", 403, .expiredProviderToken), ("ExpiredToken", 410, .expiredToken),
        ("Forbidden", 403, .forbidden), ("IdleTimeout", 400, .idleTimeout),
        ("InternalServerError", 500, .internalServerError), ("InvalidProviderToken", 403, .invalidProviderToken),
        ("InvalidPushType", 400, .invalidPushType), ("MethodNotAllowed", 405, .methodNotAllowed),
        ("MissingDeviceToken", 400, .missingDeviceToken), ("MissingProviderToken", 403, .missingProviderToken),
        ("MissingTopic", 400, .missingTopic), ("PayloadEmpty", 400, .payloadEmpty),
        ("PayloadTooLarge", 413, .payloadTooLarge), ("ServiceUnavailable", 503, .serviceUnavailable),
        ("Shutdown", 503, .shutdown), ("TooManyProviderTokenUpdates", 429, .tooManyProviderTokenUpdates),
        ("TooManyRequests", 429, .tooManyRequests), ("TopicDisallowed", 400, .topicDisallowed),
        ("Unregistered", 410, .unregistered), ("UnrelatedKeyIdInToken", 403, .unrelatedKeyIdInToken),
    ]

    private static let byName: [String: PushReason] = {
        var table = Dictionary(uniqueKeysWithValues: known.map { ($0.name, $0.reason) })
        // Spellings seen beside the documented ones (`ProviderProtocol` sections 3 and 13).
        table["BadEnvironmentKeyInToken"] = .badEnvironmentKeyIdInToken
        table["Service Unavailable"] = .serviceUnavailable
        return table
    }()

    package init(_ text: String) {
        self = Self.byName[text] ?? .other(text)
    }

    package var description: String {
        if case .other(let text) = self { return text }
        return Self.known.first { $0.reason == self }?.name ?? ""
    }
}

extension PushReason {
    /// True for answers that mean a dead token or, as likely, our own wrong environment or topic.
    package var blamesEnvironment: Bool { self == .badDeviceToken || self == .deviceTokenNotForTopic }
}
