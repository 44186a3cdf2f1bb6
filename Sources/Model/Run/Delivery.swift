/// Where a delivery stands. `leased` is not stored with the delivery: it is a pending one that an open lease names.
package enum DeliveryState: Int, Hashable, Sendable, Codable, CaseIterable {
    /// To be sent, perhaps not before some time. Goes to `suppressed` by itself, to any other state by way of
    /// a lease.
    case pending = 0
    /// APNs answered 200. Final.
    case accepted = 1
    /// APNs refused it for good, or attempts ran out. Final, unless the run is stopped because it was sent to the wrong
    /// environment or topic: then those refused for that go back to `pending`.
    case rejected = 2
    /// It may or may not have reached APNs. Final: under `on_unknown: resend`, while attempts and time are left, a doubtful
    /// one goes back to `pending` instead and is counted in `doubts`.
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

    /// As stored.
    package var code: Int64 { Int64(rawValue) }

    /// A number that stands for no state counts as `unknown`: nothing is known of such a delivery.
    package init(code: Int64) {
        self = Self.allCases.first { $0.code == code } ?? .unknown
    }
}

/// Why a delivery was deliberately not sent, stored as its word.
package enum SuppressionReason: String, Hashable, Sendable, Codable, CaseIterable {
    case silentBudget = "silent_budget"
    /// No slot of a frequency cap was free before it would have expired, or been late.
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
    /// Its turn was over when the run started, and `missed_zone` says drop.
    case late
    /// Its time zone is not known, and `unknown_zone` says drop.
    case unknownZone = "unknown_zone"
    /// Another device of the same user gets it, and `dedupe` says user.
    case duplicateOfUser = "duplicate_of_user"

    /// For which a delivery is put off on purpose, before it is suppressed.
    package static let putOff: [SuppressionReason] = [.silentBudget, .frequencyCap, .quietHours]
}

/// The account of a run. It closes at every moment: audience = pending + leased + accepted + rejected + unknown +
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
    /// Those with nothing left to do.
    package var settled: Int { accepted + rejected + unknown + suppressed }
}

/// What became of one leased delivery, as decided while sending, to be recorded by the store.
package struct Settlement: Hashable, Sendable {
    /// The reason of a delivery whose sender ended with its request on the wire.
    package static let interrupted = "Interrupted"

    package enum Verdict: Hashable, Sendable {
        case accepted
        case rejected
        /// May have reached APNs; nothing more will be done.
        case unknown
        /// Pending again, not before the given time.
        case retry(notBefore: Timestamp)
        case suppressed(SuppressionReason)
    }

    /// What the answer says about the device itself.
    package enum DeviceEffect: Hashable, Sendable {
        case none
        /// 410: the token was inactive at this time; holds only if not registered again since.
        case gone(since: Timestamp)
    }

    package var lease: Int64
    package var device: Int64
    package var generation: Int
    /// Which of the delivery's leases this was decided in, from 1; it counts for no other.
    package var leaseNumber: Int
    /// Requests of the delivery that were started, this one included if it was.
    package var attempt: Int
    package var verdict: Verdict
    /// A request was started. False for what is pending again as if it had not been leased.
    package var isRequest: Bool
    /// From the request's first byte to its answer; 0 where there was none.
    package var latencyMicroseconds: Int64
    /// False when it is certain that APNs never processed the request: its silent budget, or its slots of
    /// frequency caps, are given back.
    package var mayHaveReachedAPNs: Bool
    /// True when the request was refused for a fault that is not the push's: it counts against no limit of attempts.
    package var isExcused: Bool
    /// True when it is not known whether APNs processed it: a later attempt may then have been a second copy.
    package var isInDoubt: Bool
    /// The HTTP status, 0 where there was no answer.
    package var status: Int
    /// APNs' reason, or the transport's; nil for 200.
    package var reason: String?
    /// Index into the locales of the delivery's template, its variant's if it has one, of the text it got.
    package var localeIndex: Int?
    package var effect: DeviceEffect
    /// The delivery's, see ``Stage``; nil for the last one, and without stages.
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
