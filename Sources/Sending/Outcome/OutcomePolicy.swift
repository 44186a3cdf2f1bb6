package import APNs
import Store

/// The meaning of each response of APNs, in one table that covers every status and reason (`ProviderProtocol` sections
/// 3, 7 and 8).
///
/// Only a response that arrived whole, with a reason that Apple documents for its status, says anything about a device.
/// Other 4xx responses are faults of the request or the host, except 403 (the credential) and 429 (retried). A few such
/// faults stop the run, and they change no token.
package enum OutcomePolicy {
    /// The outcome of the delivery.
    package enum Decision: Hashable, Sendable {
        case accepted
        /// Refused permanently.
        case rejected
        /// Retried later, if attempts and time allow.
        case retry(Wait)
        /// It is unknown whether APNs processed the push.
        case unknown
    }

    /// The kind of wait before the next attempt. See ``RetryWait``.
    package enum Wait: Hashable, Sendable {
        /// No wait: on another connection, or after a person has repaired the request or the credential.
        case none
        /// A growing wait, for this device token alone.
        case device
        /// A growing wait, because the service is in trouble.
        case service
        /// A growing wait, because the provider token was changed too often.
        case credential
    }

    /// The consequence of a response beyond its own delivery.
    package enum Consequence: Hashable, Sendable {
        case none
        /// The token is inactive, by the time rule.
        case tokenGone
        /// The token, the host or the topic may be wrong. The device is suspended only if the run proves healthy.
        case environmentMismatch
        /// The request is at fault. The run stops after the first few such responses.
        case requestFault
        /// The credential is at fault. Its environment stops immediately, and the others continue.
        case credentialFault
        /// The provider token is expired, or its key belongs to another team than the key first used on the connection.
        /// The push is sent again once, with a new token or over a new connection. A second refusal is a credential
        /// fault.
        case refusedProviderToken
    }

    package struct Row: Hashable, Sendable {
        package var decision: Decision
        package var consequence: Consequence
        /// `false` if the device certainly does not get the push. Its silent budget is then returned.
        package var mayHaveArrived: Bool
        /// `true` if no request was started, or if APNs refused it for a fault outside the push. The attempt does not
        /// count against `max_attempts`.
        package var isExcused: Bool

        package init(
            _ decision: Decision, _ consequence: Consequence = .none, mayHaveArrived: Bool = true,
            isExcused: Bool = false
        ) {
            self.decision = decision
            self.consequence = consequence
            self.mayHaveArrived = mayHaveArrived
            self.isExcused = isExcused
        }

        /// Returns a row for a push that APNs did not process, for a reason outside the push. The push is sent again as
        /// if it had never been sent.
        package static func untouched(_ decision: Decision, _ consequence: Consequence = .none) -> Row {
            Row(decision, consequence, mayHaveArrived: false, isExcused: true)
        }

        /// Returns a row for a push that APNs refused with a response.
        package static func refused(_ decision: Decision, _ consequence: Consequence = .none) -> Row {
            Row(decision, consequence, mayHaveArrived: false)
        }
    }

    package static func row(for result: PushResult) -> Row {
        switch result {
        case .notSent: .untouched(.retry(.none))
        case .unknown: Row(.unknown)
        case .cutOff(let status) where status >= 500: Row(.retry(.service))
        case .cutOff: .untouched(.retry(.service))
        case .answered(let answer) where answer.status == 200: Row(.accepted)
        case .answered(let answer) where answer.isAboutToken:
            .refused(.rejected, answer.status == 410 ? .tokenGone : .environmentMismatch)
        case .answered(let answer): row(status: answer.status, reason: answer.reason)
        }
    }

    /// The share of responses blaming environment or topic above which the host or the topic is treated as wrong. In
    /// that case no token is suspended.
    static let mismatchShareMax = 0.3

    /// Returns whether so many tokens are refused that the host or the topic must be wrong, not the devices.
    static func isMismatch(_ counts: MismatchCount) -> Bool {
        Double(counts.wrong) > Double(counts.all) * mismatchShareMax
    }

    private static func row(status: Int, reason: PushReason?) -> Row {
        switch reason {
        case .badCollapseId, .badExpirationDate, .badMessageId, .badPriority, .badTopic, .duplicateHeaders,
            .invalidPushType, .missingDeviceToken, .missingTopic, .payloadEmpty, .topicDisallowed, .badPath,
            .methodNotAllowed:
            .untouched(.retry(.none), .requestFault)
        case .badCertificate, .badCertificateEnvironment, .invalidProviderToken, .missingProviderToken,
            .badEnvironmentKeyIdInToken, .forbidden:
            .untouched(.retry(.none), .credentialFault)
        case .expiredProviderToken, .unrelatedKeyIdInToken:
            .untouched(.retry(.none), .refusedProviderToken)
        case .tooManyProviderTokenUpdates:
            .untouched(.retry(.credential))
        case .payloadTooLarge:
            .refused(.rejected)
        case .tooManyRequests:
            .refused(.retry(.device))
        case .idleTimeout:
            .untouched(.retry(.none))
        case .internalServerError, .serviceUnavailable, .shutdown:
            Row(.retry(.service))
        // The first four reasons are about the token and handled above, unless they come with an unexpected status. All
        // reasons are listed, so that the compiler finds a new reason that is not handled.
        case .badDeviceToken, .deviceTokenNotForTopic, .unregistered, .expiredToken, .other, nil:
            rowForUnknownReason(status: status)
        }
    }

    /// Returns the row for an unknown or missing reason: the status alone decides.
    ///
    /// An undocumented 4xx, including 410, is treated as a fault of the request. So is a redirect, or a 2xx other than
    /// 200, which comes from a server that is not APNs. The run stops after the first few. When the run continues, all
    /// refused deliveries are sent again.
    private static func rowForUnknownReason(status: Int) -> Row {
        switch status {
        case 403: .untouched(.retry(.none), .credentialFault)
        case 429: .refused(.retry(.device))
        case 500...599: Row(.retry(.service))
        default: .untouched(.retry(.none), .requestFault)
        }
    }
}
