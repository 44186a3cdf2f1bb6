import FoundationEssentials
import HTTP2

/// The outcome of one push. A rejection is a value, never an error.
package struct PushCompletion: Sendable, Hashable {
    /// As given in ``Push/tag``.
    package var tag: Int64
    package var result: PushResult
    /// The time from the start of the request to the response, in microseconds. 0 without a response.
    package var latencyMicroseconds: Int64
    /// The time when the push was allowed to start, by ``BootClock``. 0 if it was not started, or if no check was
    /// needed.
    package var startedAt: UInt64

    package init(tag: Int64, result: PushResult, latencyMicroseconds: Int64 = 0, startedAt: UInt64 = 0) {
        self.tag = tag
        self.result = result
        self.latencyMicroseconds = latencyMicroseconds
        self.startedAt = startedAt
    }
}

package enum PushResult: Sendable, Hashable {
    case answered(PushResponse)
    /// The response has this status other than 200, but is incomplete, so its reason is unknown. It is no evidence
    /// about the device, the request or the credential.
    case cutOff(status: Int)
    /// The push may or may not have been processed (`ProviderProtocol` section 8).
    case unknown(TransportFault)
    /// The push was certainly not processed: never completely written, refused, or beyond a GOAWAY's last stream.
    case notSent(TransportFault)
}

/// A complete response of APNs (`ProviderProtocol` section 7). An incomplete one is ``PushResult/cutOff(status:)``.
package struct PushResponse: Sendable, Hashable {
    package var status: Int
    /// `nil` for 200, and for an error whose body names no reason.
    package var reason: PushReason?
    /// Milliseconds since 1970, only with 410: the time when APNs last confirmed that the token was inactive.
    package var timestamp: Int64?
    /// Only with 429 and 5xx.
    package var retryAfter: RetryAfter?

    package init(status: Int, reason: PushReason? = nil, timestamp: Int64? = nil, retryAfter: RetryAfter? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
    }
}

extension PushResponse {
    /// Reads a response. The body of a 200 is ignored.
    ///
    /// - Parameter retryAfter: the value of the header. Empty if there was none.
    init(status: Int, body: [UInt8], retryAfter: some Collection<UInt8>) {
        self.init(status: status)
        if status == 429 || status >= 500 { self.retryAfter = RetryAfter(parsing: retryAfter) }
        guard status != 200, !body.isEmpty else { return }
        let error = ErrorBody(parsing: body)
        reason = error.reason.map { PushReason($0) }
        timestamp = status == 410 ? error.timestamp : nil
    }

    /// Whether the token is at fault, and not the request, the credential or the service. Only documented reasons with
    /// their documented status count.
    package var isAboutToken: Bool {
        switch reason {
        case .badDeviceToken, .deviceTokenNotForTopic: status == 400
        case .unregistered, .expiredToken: status == 410
        default: false
        }
    }

    /// Whether the connection of this response must be retired (`ProviderProtocol` sections 3 and 7).
    package var retiresConnection: Bool {
        switch reason {
        case .expiredProviderToken, .unrelatedKeyIdInToken, .tooManyProviderTokenUpdates, .shutdown, .idleTimeout: true
        default: false
        }
    }
}

/// The `reason` of an error response (`ProviderProtocol` sections 3 and 7). Unknown reasons keep their text.
package enum PushReason: Hashable, Sendable, CustomStringConvertible {
    case badCertificate, badCertificateEnvironment, badCollapseId, badDeviceToken, badEnvironmentKeyIdInToken
    case badExpirationDate, badMessageId, badPath, badPriority, badTopic, deviceTokenNotForTopic, duplicateHeaders
    case expiredProviderToken, expiredToken, forbidden, idleTimeout, internalServerError, invalidProviderToken
    case invalidPushType, methodNotAllowed, missingDeviceToken, missingProviderToken, missingTopic, payloadEmpty
    case payloadTooLarge, serviceUnavailable, shutdown, tooManyProviderTokenUpdates, tooManyRequests
    case topicDisallowed, unregistered, unrelatedKeyIdInToken
    case other(String)

    /// The documented reasons as spelled on the wire, each with its status.
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
        // Other spellings that occur besides the documented ones (`ProviderProtocol` sections 3 and 13).
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
    /// Whether the reason means a dead token or, as likely, the wrong environment or topic.
    package var blamesEnvironment: Bool { self == .badDeviceToken || self == .deviceTokenNotForTopic }
}

/// The body of an error response: `{"reason":"...","timestamp":...}` (`ProviderProtocol` section 7). Errors are rare. A
/// success has no body and is not parsed here.
///
/// A proxy or a broken service may send any body. A body that is no such object names no reason. If a body is cut off
/// after its reason, the reason gets an ellipsis, so that it matches no known reason. Other fields are ignored.
struct ErrorBody: Hashable {
    private static let decoder = JSONDecoder()

    var reason: String?
    var timestamp: Int64?

    init(parsing bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        if let fields = try? Self.decoder.decode(Fields.self, from: Data(bytes)) {
            reason = fields.reason
            timestamp = fields.timestamp
            return
        }
        let text = String(decoding: bytes, as: UTF8.self)
        reason = text.firstMatch(of: /^\s*\{(?s:.*?)"reason"\s*:\s*"([^"\\]*)"/).map { String($0.1) + "…" }
    }

    private struct Fields: Decodable {
        enum CodingKeys: String, CodingKey { case reason, timestamp }

        let reason: String?
        let timestamp: Int64?

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            reason = try? values.decode(String.self, forKey: .reason)
            timestamp = Self.wholeNumber(values)
        }

        /// Reads a number. It may be in quotes, or have a fraction, which is dropped.
        private static func wholeNumber(_ values: KeyedDecodingContainer<CodingKeys>) -> Int64? {
            if let number = try? values.decode(Int64.self, forKey: .timestamp) { return number }
            let fraction = try? values.decode(Double.self, forKey: .timestamp)
            let text = try? values.decode(String.self, forKey: .timestamp)
            return (fraction ?? text.flatMap { Double($0) }).flatMap { Int64(exactly: $0.rounded(.towardZero)) }
        }
    }
}

/// The reason in the peer's GOAWAY: APNs sends JSON with a `reason`, other peers send plain text or nothing
/// (`ProviderProtocol` section 8).
struct GoAwayReason: CustomStringConvertible {
    private static let bytesMax = 200

    let reason: PushReason?
    let description: String

    init(_ notice: GoAwayNotice) {
        if let name = ErrorBody(parsing: notice.debugData).reason {
            reason = PushReason(name)
            description = String(name.prefix(Self.bytesMax))
            return
        }
        reason = nil
        let printable = notice.debugData.prefix(Self.bytesMax).filter { (0x20..<0x7f).contains($0) }
        let text = String(decoding: printable, as: UTF8.self)
        description = text.isEmpty ? "GOAWAY with code \(notice.code)" : text
    }

    /// Whether no other connection with this certificate would succeed.
    var isAboutCertificate: Bool { reason == .badCertificate || reason == .badCertificateEnvironment }
}
