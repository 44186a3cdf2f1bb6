package import Model

extension RunControl {
    /// The reason why a run stops before its end.
    package enum StopReason: Hashable, Sendable {
        /// A person or the operating system asked for the stop. The same command continues the run later.
        case stopRequested
        /// Nothing is due before this moment, and the caller does not wait that long.
        case nothingDue(until: Timestamp)
        /// The host cannot be reached or trusted.
        case unreachable(String)
        /// APNs does not accept the credential.
        case credential(String)
        /// Too many responses say that the requests are wrong.
        case breaker(String)
        /// The share of refused tokens is so large that the host or the topic must be wrong.
        case environmentMismatch(PushEnvironment, String)
        /// Another process paused or cancelled the run.
        case stateChanged(RunState)
        /// A stop of the run, its campaign or everything is in force until a person lifts it.
        case stopped(StopOrder)
        /// The lead of the run has exited or released it. Another sender takes the lead.
        case leadGone
        /// This sender's heartbeats take too long, and other senders continue the run.
        case storeTooSlow(String)

        /// The reason why a person must look at the responses. `nil` if no person has to.
        var halt: String? {
            switch self {
            case .breaker(let reason), .environmentMismatch(_, let reason): reason
            case .stopRequested, .nothingDue, .unreachable, .credential, .stateChanged, .stopped, .leadGone,
                .storeTooSlow:
                nil
            }
        }

        var waitsForPerson: Bool { halt != nil }
    }
}
