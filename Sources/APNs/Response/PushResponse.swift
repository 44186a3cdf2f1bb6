/// What came of one push. A rejection is a value, never an error.
package struct PushCompletion: Sendable, Hashable {
    /// As given in ``Push/tag``.
    package var tag: Int64
    package var result: PushResult
    /// From the first byte written to the answer, in microseconds; 0 where there was no answer.
    package var latencyMicroseconds: Int64

    package init(tag: Int64, result: PushResult, latencyMicroseconds: Int64 = 0) {
        self.tag = tag
        self.result = result
        self.latencyMicroseconds = latencyMicroseconds
    }
}

package enum PushResult: Sendable, Hashable {
    case answered(PushResponse)
    /// It may or may not have been processed (`ProviderProtocol` section 8).
    case unknown(TransportFault)
    /// Certainly not processed: never written, refused, or beyond a GOAWAY's last stream.
    case notSent(TransportFault)
}

/// The answer of APNs (`ProviderProtocol` section 7).
package struct PushResponse: Sendable, Hashable {
    package var status: Int
    /// Nil for 200, and for an error whose body names no reason.
    package var reason: PushReason?
    /// Milliseconds since 1970, with 410 only: when the token was last known to be inactive.
    package var timestamp: Int64?

    package init(status: Int, reason: PushReason? = nil, timestamp: Int64? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }
}

extension PushResponse {
    /// Reads what came with a status; the body of a 200 is not looked at.
    init(status: Int, body: [UInt8]) {
        self.init(status: status)
        guard status != 200, !body.isEmpty else { return }
        let error = ErrorBody(parsing: body)
        reason = error.reason.map { PushReason($0) }
        timestamp = status == 410 ? error.timestamp : nil
    }

    /// The token is at fault, not the request, the credential or the service.
    var isAboutToken: Bool {
        switch reason {
        case .badDeviceToken, .deviceTokenNotForTopic: true
        default: status == 410
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
