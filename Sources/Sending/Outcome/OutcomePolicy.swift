package import APNs
import Store

/// What each response of APNs means: the one table, total over status and reason (`ProviderProtocol` sections 3, 7
/// and 8).
///
/// Only a complete, known response says anything about a device: an answer that came whole, with a reason that Apple
/// documents for its status. Every other answer is a fault of the request or the host, whatever its status: it stops
/// the run after a few, and touches no token.
package enum OutcomePolicy {
    /// What becomes of the delivery.
    package enum Decision: Hashable, Sendable {
        case accepted
        /// Refused for good.
        case rejected
        /// Tried again later, if attempts and time allow.
        case retry(Wait)
        /// Nobody knows whether it was processed.
        case unknown
    }

    /// How long to wait before the next attempt; see ``Backoff``.
    package enum Wait: Hashable, Sendable {
        /// At once: on another connection, or after somebody has repaired the request or the credential.
        case none
        /// Growing, for this device token alone.
        case device
        /// Growing, because the service is in trouble.
        case service
        /// Growing, because the provider token was changed too often.
        case credential
    }

    /// What it says about anything but this one delivery.
    package enum Consequence: Hashable, Sendable {
        case none
        /// The token is inactive, by the time rule.
        case tokenGone
        /// Perhaps the token, perhaps our host or topic: suspended only if the run proves healthy.
        case environmentMismatch
        /// Our request is at fault: the run stops after the first few.
        case requestFault
        /// The credential is at fault: its environment stops at once, the others go on.
        case credentialFault
        /// Our provider token is expired, or its key unrelated to the one first used on the connection: to be sent
        /// again once, with a new token or over a new connection; a second time it is a fault.
        case refusedProviderToken
    }

    package struct Row: Hashable, Sendable {
        package var decision: Decision
        package var consequence: Consequence
        /// False when the device certainly does not get the push: its silent budget is given back.
        package var mayHaveArrived: Bool
        /// True when no request was started, or APNs refused it for a fault that is not the push's: it does not count
        /// against `max_attempts`.
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

        /// Nothing of the push was taken, for a reason that is not its own: it goes again as if it had never left.
        package static func untouched(_ decision: Decision, _ consequence: Consequence = .none) -> Row {
            Row(decision, consequence, mayHaveArrived: false, isExcused: true)
        }

        /// APNs refused this push, and says so.
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

    /// Above this share of answers that blame environment or topic, the host or the topic is taken to be wrong and no
    /// token is suspended.
    static let mismatchShareMax = 0.3

    /// Whether so many wrong ones speak against the host or the topic, not against the devices.
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
        // The first four are about the token and have their row above, unless they come with another status than
        // theirs; named, so that a new reason does not compile without one.
        case .badDeviceToken, .deviceTokenNotForTopic, .unregistered, .expiredToken, .other, nil:
            rowForUnknownReason(status: status)
        }
    }

    /// A reason we have not heard of, or none at all: the status alone decides. A 4xx that is not documented, 410 too,
    /// is our request's fault until proven otherwise. A redirect, or a 2xx that is no 200, comes from something that is
    /// not APNs. The run stops after the first few, and all that were refused so are sent again when it continues.
    private static func rowForUnknownReason(status: Int) -> Row {
        switch status {
        case 403: .untouched(.retry(.none), .credentialFault)
        case 429: .refused(.retry(.device))
        case 500...599: Row(.retry(.service))
        default: .untouched(.retry(.none), .requestFault)
        }
    }
}
