import APNs
import Model

/// Counts the responses of one environment that blame the run or the credential instead of a device. Decides when these
/// responses must stop the run.
struct FailureCounters {
    /// The run stops at this number of responses that blame the request.
    static let requestFaultsMax = 3
    /// The minimum number of responses before their share of mismatches is checked.
    static let answersMin = 200

    private let environment: PushEnvironment
    private let topic: String
    private var mismatches = SlidingShare()
    private var requestFaults = 0
    /// The devices whose push was refused because of the provider token. Each push is sent again once, over a new
    /// connection.
    private var refusedOnce: Set<Int64> = []
    /// The reason to stop. A later reason does not replace the first.
    private(set) var verdict: StopReason?

    init(_ environment: PushEnvironment, topic: String) {
        self.environment = environment
        self.topic = topic
    }

    mutating func count(_ row: OutcomePolicy.Row, device: Int64, result: PushResult) {
        guard case .answered(let answer) = result else { return }
        mismatches.add(row.consequence == .environmentMismatch)
        switch row.consequence {
        case .none, .tokenGone:
            if !refusedOnce.isEmpty { refusedOnce.remove(device) }
        case .environmentMismatch: judgeMismatch(answer.summary)
        case .requestFault: countRequestFault(answer)
        case .credentialFault: stop(.credential(Self.credentialAdvice(answer)))
        case .refusedProviderToken: countRefusal(of: device, answer)
        }
    }

    private mutating func stop(_ reason: StopReason) {
        verdict = verdict ?? reason
    }

    private mutating func judgeMismatch(_ reason: String) {
        guard mismatches.count >= Self.answersMin, mismatches.exceeds(OutcomePolicy.mismatchShareMax) else {
            return
        }
        stop(
            .environmentMismatch(
                environment,
                "\(mismatches.hits) of the last \(mismatches.count) responses for \(environment) devices of \(topic) "
                    + "say that the token is not for this environment or topic (the last: \(reason)); check the devices' "
                    + "`environment`, the campaign's `topic` and `endpoints.\(environment)`, and resume the run; no device was "
                    + "changed; the refused devices are retried, each in the environment stored for it then"))
    }

    private mutating func countRequestFault(_ answer: PushResponse) {
        requestFaults += 1
        guard requestFaults >= Self.requestFaultsMax else { return }
        // A reason that Apple does not document probably comes from another server.
        let host = answer.isDocumented ? "" : ", and whether `endpoints.\(environment)` is APNs; no device was changed"
        stop(
            .breaker(
                "APNs refuses the requests with \(answer.summary); check topic, push_type, priority and collapse\(host)"
            ))
    }

    private mutating func countRefusal(of device: Int64, _ answer: PushResponse) {
        guard !refusedOnce.insert(device).inserted else { return }
        stop(
            .credential(
                answer.reason == .unrelatedKeyIdInToken
                    ? "UnrelatedKeyIdInToken, even on a new connection: the key is from a different team than the one "
                        + "in use; check team_id, key_id and key_path"
                    : "\(answer.summary) for a token just signed: this machine's clock is wrong; check NTP"))
    }

    /// Returns the advice for a refused credential. The caller puts the environment and the key or certificate before
    /// it.
    private static func credentialAdvice(_ answer: PushResponse) -> String {
        switch answer.reason {
        case .invalidProviderToken:
            "InvalidProviderToken: APNs does not accept the key; check that key_id and team_id are not swapped, that "
                + "the key is not revoked and that this machine's clock is right"
        case .badEnvironmentKeyIdInToken:
            "BadEnvironmentKeyIdInToken: the key is bound to the other environment; give each environment its own key "
                + "under keys"
        case .missingProviderToken:
            "MissingProviderToken: the requests arrive without a provider token; check if a proxy or relay removes "
                + "the authorization header"
        case .badCertificate, .badCertificateEnvironment:
            "\(answer.summary): the certificate is not for this app or environment, or was revoked; replace it"
        default:
            "\(answer.summary): APNs refuses the credential; check team_id, key_id and key_path"
        }
    }
}

extension PushResponse {
    fileprivate var isDocumented: Bool {
        PushReason.known.contains { $0.status == status && $0.reason == reason }
    }

    /// The reason, or the bare status if the response has no reason.
    fileprivate var summary: String { reason?.description ?? "status \(status)" }
}

/// The share of one kind of response among the last ``windowMax`` responses. Older responses do not count, so that a
/// million good responses do not hide later bad ones.
struct SlidingShare {
    /// The number of responses in a full window.
    static let windowMax = 1000

    private var ring: [Bool] = []
    private var next = 0
    private(set) var hits = 0

    /// The number of responses in the window.
    var count: Int { ring.count }

    mutating func add(_ isHit: Bool) {
        if isHit { hits += 1 }
        guard ring.count == Self.windowMax else { return ring.append(isHit) }
        if ring[next] { hits -= 1 }
        ring[next] = isHit
        next = next + 1 == Self.windowMax ? 0 : next + 1
    }

    func exceeds(_ share: Double) -> Bool {
        Double(hits) > Double(count) * share
    }
}
