import APNs

/// Counts answers that blame the run instead of a device, until there are enough to be sure.
struct AnswerTally {
    /// The run stops at this many answers that blame the request.
    static let requestFaultsMax = 3
    /// Below this many answers no share is judged.
    static let answersMin = 200
    /// The share of "not this environment or topic" answers above which nobody believes in dead tokens.
    static let wrongPlaceShareMax = 0.3

    private var answers = 0
    private var wrongPlace = 0
    private var requestFaults = 0
    private var halt: RunControl.Halt?

    var verdict: RunControl.Halt? { halt }

    /// True when so few answers came that the share could not be judged while the run went on, and it is above the
    /// limit all the same.
    var isWrongPlace: Bool {
        answers > 0 && Double(wrongPlace) > Double(answers) * Self.wrongPlaceShareMax
    }

    mutating func count(_ row: OutcomePolicy.Row, attempt: Int, result: PushResult) {
        guard case .answered(let answer) = result else { return }
        answers += 1
        let reason = answer.reason?.description ?? "status \(answer.status)"
        switch row.consequence {
        case .none, .tokenGone: break
        case .wrongPlace: countWrongPlace(reason)
        case .requestFault: countRequestFault(reason)
        case .credentialFault: halt = halt ?? .credential(Self.credentialAdvice(reason))
        case .providerTokenExpired where attempt > 1:
            halt = halt ?? .credential("\(reason) for a token just signed: this machine's clock is wrong; check NTP")
        case .providerTokenExpired: break
        }
    }

    private mutating func countWrongPlace(_ reason: String) {
        wrongPlace += 1
        guard answers >= Self.answersMin, isWrongPlace else { return }
        halt =
            halt
            ?? .breaker(
                "\(wrongPlace) of \(answers) answers say the token is not for this environment or topic (last: "
                    + "\(reason)); check the devices' `environment`, the `topic` and the host; no device was changed")
    }

    private mutating func countRequestFault(_ reason: String) {
        requestFaults += 1
        guard requestFaults >= Self.requestFaultsMax else { return }
        halt = halt ?? .breaker("APNs refuses our requests with \(reason); check topic, push_type and collapse")
    }

    private static func credentialAdvice(_ reason: String) -> String {
        switch reason {
        case "InvalidProviderToken":
            "InvalidProviderToken: APNs does not accept the key; check that key_id and team_id are not swapped, that "
                + "the key is not revoked and that this machine's clock is right"
        case "BadEnvironmentKeyIdInToken":
            "BadEnvironmentKeyIdInToken: the key is bound to the other environment; use one for this environment"
        case "BadCertificate", "BadCertificateEnvironment":
            "\(reason): the certificate is not for this app or environment, or was revoked; replace it"
        default:
            "\(reason): APNs refuses the credential; check team_id, key_id and key_path"
        }
    }
}
