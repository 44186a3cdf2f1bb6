/// The state of a delivery. The state `leased` is not stored: it is a pending delivery that an open lease contains.
package enum DeliveryState: Int, Hashable, Sendable, Codable, CaseIterable {
    /// Waits to be sent, possibly until a given time. Becomes `suppressed` directly, and any other state through a
    /// lease.
    case pending = 0
    /// APNs responded with 200. Final.
    case accepted = 1
    /// APNs rejected it permanently, or attempts ran out. Final, unless the run stops because it used the wrong
    /// environment or topic. Deliveries rejected for that reason return to `pending`.
    case rejected = 2
    /// It may or may not have reached APNs. Final. Under `on_unknown: resend`, while attempts and time are left, a
    /// delivery in doubt returns to `pending` instead and is counted in `doubts`.
    case unknown = 3
    /// Deliberately not sent. Final.
    case suppressed = 4

    package var name: String {
        switch self {
        case .pending: "pending"
        case .accepted: "accepted"
        case .rejected: "rejected"
        case .unknown: "unknown"
        case .suppressed: "suppressed"
        }
    }

    /// The stored number.
    package var code: Int64 { Int64(rawValue) }

    /// Creates a state from its stored number. An invalid number counts as `unknown`.
    package init(code: Int64) {
        self = Self.allCases.first { $0.code == code } ?? .unknown
    }
}

/// The reason why a delivery was deliberately not sent. It is stored as its raw value.
package enum SuppressionReason: String, Hashable, Sendable, Codable, CaseIterable {
    case silentBudget = "silent_budget"
    /// No slot of a frequency cap was free before the delivery expired or the run was late.
    case frequencyCap = "frequency_cap"
    case coalesced
    case quietHours = "quiet_hours"
    case expired
    case holdout
    case alertsNotAllowed = "alerts_not_allowed"
    case wrongEnvironment = "wrong_environment"
    case tokenGone = "token_gone"
    case payloadTooLarge = "payload_too_large"
    case cancelled
    /// Its time was over when the run started, and `missed_zone` is drop.
    case late
    /// Its time zone is unknown, and `unknown_zone` is drop.
    case unknownZone = "unknown_zone"
    /// Another device of the same user receives the push, and `dedupe` is user.
    case duplicateOfUser = "duplicate_of_user"

    /// The reasons for which a delivery is postponed before it is suppressed.
    package static let putOff: [SuppressionReason] = [.silentBudget, .frequencyCap, .quietHours]
}

/// The consequences of each reason for its run. `meaning` states all of them for every reason.
extension SuppressionReason {
    /// Whether the campaign, the configuration or a person leaves the delivery out. Such a delivery counts like an
    /// accepted one when the success of a run is evaluated.
    package var isOnPurpose: Bool { meaning.isOnPurpose }
    /// Whether the run leaves the device out from the start, although the audience selects it.
    package var isFromTheStart: Bool { meaning.isFromTheStart }
    /// Whether the reason is no evidence about the run even after a request: a newer push replaced the delivery, or the
    /// run was cancelled.
    package var isSilent: Bool { meaning.isSilent }

    private struct Meaning {
        var isOnPurpose = false
        var isFromTheStart = false
        var isSilent = false
    }

    private var meaning: Meaning {
        switch self {
        case .silentBudget, .frequencyCap, .quietHours, .unknownZone: Meaning(isOnPurpose: true)
        case .coalesced, .cancelled: Meaning(isOnPurpose: true, isSilent: true)
        case .holdout, .duplicateOfUser: Meaning(isOnPurpose: true, isFromTheStart: true)
        case .alertsNotAllowed, .wrongEnvironment, .tokenGone: Meaning(isFromTheStart: true)
        case .expired, .payloadTooLarge, .late: Meaning()
        }
    }
}

extension Sequence<Report.Reason> {
    /// Returns the number of deliveries that were suppressed for a reason with this property.
    package func count(of isMeant: (SuppressionReason) -> Bool) -> Int {
        reduce(0) { $0 + (SuppressionReason(rawValue: $1.reason).map(isMeant) == true ? $1.count : 0) }
    }
}

/// The delivery counts of a run. They always balance: audience = pending + leased + accepted + rejected + unknown +
/// suppressed.
package struct DeliveryCounts: Hashable, Sendable, Codable {
    package var audience = 0
    package var pending = 0
    package var leased = 0
    package var accepted = 0
    package var rejected = 0
    package var unknown = 0
    package var suppressed = 0

    package init() {}

    package var sum: Int { pending + leased + accepted + rejected + unknown + suppressed }
    package var closes: Bool { audience == sum }
    /// The number of deliveries in a final state.
    package var settled: Int { accepted + rejected + unknown + suppressed }
    /// The settled deliveries without the suppressed ones, which take no time and so say nothing about the speed.
    package var sent: Int { accepted + rejected + unknown }
    /// Whether any device got the push, or may have got it.
    package var hasSent: Bool { accepted + unknown > 0 }
}

/// The outcome of one leased delivery. The sender decides it, and the store records it.
package struct Settlement: Hashable, Sendable {
    /// The reason of a delivery whose sender exited with the request in flight.
    package static let interrupted = "Interrupted"

    package enum Verdict: Hashable, Sendable {
        case accepted
        case rejected
        /// The request may have reached APNs. The delivery is not retried.
        case unknown
        /// Returns the delivery to pending, not before the given time.
        case retry(notBefore: Timestamp)
        case suppressed(SuppressionReason)
    }

    /// The response's consequence for the device.
    package enum DeviceEffect: Hashable, Sendable {
        case none
        /// 410: the token was inactive at this time. It applies only if the device has not registered again since.
        case gone(since: Timestamp)
    }

    package var lease: Int64
    package var device: Int64
    package var generation: Int
    /// The number of the lease that the settlement belongs to, from 1 per delivery. It applies to no other lease.
    package var leaseNumber: Int
    /// The number of started requests of the delivery, including this one if it was started.
    package var attempt: Int
    package var verdict: Verdict
    /// Whether a request was started. False for a delivery that returns to pending as if it had not been leased.
    package var isRequest: Bool
    /// The time from the request's first byte to its response. 0 without a response.
    package var latencyMicroseconds: Int64
    /// False if APNs certainly never processed the request. The delivery's silent budget and frequency cap slots are
    /// then released.
    package var mayHaveReachedAPNs: Bool
    /// Whether the request failed for a reason unrelated to the push. It then does not count towards the attempt limit.
    package var isExcused: Bool
    /// Whether it is unknown if APNs processed the request. A later attempt may then be a second copy.
    package var isInDoubt: Bool
    /// The HTTP status. 0 without a response.
    package var status: Int
    /// APNs' reason, or the transport's. `nil` for 200.
    package var reason: String?
    /// The locale of the delivered text, as an index into its template's locales. The template is that of the variant,
    /// or the run's if the delivery has no variant.
    package var localeIndex: Int?
    package var effect: DeviceEffect
    /// The delivery's stage, see ``Stage``. `nil` for the last stage, and without stages.
    package var stage: Int?

    package init(
        lease: Int64, device: Int64, generation: Int, leaseNumber: Int, attempt: Int, verdict: Verdict,
        isRequest: Bool = true, latencyMicroseconds: Int64 = 0, mayHaveReachedAPNs: Bool = true,
        isExcused: Bool = false, isInDoubt: Bool = false, status: Int = 0, reason: String? = nil,
        localeIndex: Int? = nil, effect: DeviceEffect = .none, stage: Int? = nil
    ) {
        self.lease = lease
        self.device = device
        self.generation = generation
        self.leaseNumber = leaseNumber
        self.attempt = attempt
        self.verdict = verdict
        self.isRequest = isRequest
        self.latencyMicroseconds = latencyMicroseconds
        self.mayHaveReachedAPNs = mayHaveReachedAPNs
        self.isExcused = isExcused
        self.isInDoubt = isInDoubt
        self.status = status
        self.reason = reason
        self.localeIndex = localeIndex
        self.effect = effect
        self.stage = stage
    }
}
