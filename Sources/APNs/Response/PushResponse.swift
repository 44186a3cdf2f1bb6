import FoundationEssentials
import HTTP2

/// What came of one push. A rejection is a value, never an error.
package struct PushCompletion: Sendable, Hashable {
    /// As given in ``Push/tag``.
    package var tag: Int64
    package var result: PushResult
    /// From the first byte written to the answer, in microseconds; 0 where there was no answer.
    package var latencyMicroseconds: Int64
    /// When it was allowed to start, by ``BootClock``; 0: it was not started, or nothing held it back.
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
    /// Answered with this status, which is no 200, and the answer broke off: why is not known. It says nothing about
    /// the device, the request or the credential.
    case cutOff(status: Int)
    /// It may or may not have been processed (`ProviderProtocol` section 8).
    case unknown(TransportFault)
    /// Certainly not processed: never written, refused, or beyond a GOAWAY's last stream.
    case notSent(TransportFault)
}

/// The answer of APNs, whole (`ProviderProtocol` section 7). One that broke off is ``PushResult/cutOff(status:)``.
package struct PushResponse: Sendable, Hashable {
    package var status: Int
    /// Nil for 200, and for an error whose body names no reason.
    package var reason: PushReason?
    /// Milliseconds since 1970, with 410 only: when the token was last known to be inactive.
    package var timestamp: Int64?
    /// With 429 and 5xx only.
    package var retryAfter: RetryAfter?

    package init(status: Int, reason: PushReason? = nil, timestamp: Int64? = nil, retryAfter: RetryAfter? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.retryAfter = retryAfter
    }
}

extension PushResponse {
    /// Reads what came with a status; the body of a 200 is not looked at.
    ///
    /// - Parameter retryAfter: the value of the header, empty where there was none.
    init(status: Int, body: [UInt8], retryAfter: some Collection<UInt8>) {
        self.init(status: status)
        if status == 429 || status >= 500 { self.retryAfter = RetryAfter(parsing: retryAfter) }
        guard status != 200, !body.isEmpty else { return }
        let error = ErrorBody(parsing: body)
        reason = error.reason.map { PushReason($0) }
        timestamp = status == 410 ? error.timestamp : nil
    }

    /// The token is at fault, not the request, the credential or the service: only a reason that APNs documents says
    /// so, with the status it documents.
    package var isAboutToken: Bool {
        switch reason {
        case .badDeviceToken, .deviceTokenNotForTopic: status == 400
        case .unregistered, .expiredToken: status == 410
        default: false
        }
    }

    /// The connection that gave this answer is of no more use (`ProviderProtocol` sections 3 and 7).
    package var retiresConnection: Bool {
        switch reason {
        case .expiredProviderToken, .unrelatedKeyIdInToken, .tooManyProviderTokenUpdates, .shutdown, .idleTimeout: true
        default: false
        }
    }
}

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

/// The body of an error answer: `{"reason":"...","timestamp":...}` (`ProviderProtocol` section 7). Errors are rare: a
/// success has no body and never gets here.
///
/// Anything may come from a proxy or a broken service: a body that is no such object names no reason. If a body breaks
/// off behind its reason, the text is kept with an ellipsis: it is none of the reasons that something follows from.
/// Other fields are passed over.
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

        /// Also in quotes, or with a fraction, which is dropped.
        private static func wholeNumber(_ values: KeyedDecodingContainer<CodingKeys>) -> Int64? {
            if let number = try? values.decode(Int64.self, forKey: .timestamp) { return number }
            let fraction = try? values.decode(Double.self, forKey: .timestamp)
            let text = try? values.decode(String.self, forKey: .timestamp)
            return (fraction ?? text.flatMap { Double($0) }).flatMap { Int64(exactly: $0.rounded(.towardZero)) }
        }
    }
}

/// What the peer says with a GOAWAY: APNs sends JSON with a `reason`, others plain text or nothing (`ProviderProtocol`
/// section 8).
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

    /// No connection with this certificate will do better.
    var isAboutCertificate: Bool { reason == .badCertificate || reason == .badCertificateEnvironment }
}
