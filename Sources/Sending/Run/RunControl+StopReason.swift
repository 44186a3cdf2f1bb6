package import Model

extension RunControl {
    /// Why a run stops before its end.
    package enum StopReason: Hashable, Sendable {
        /// A person or the operating system asked for it: the same command goes on later.
        case stopRequested
        /// Nothing is due before this moment, which is further away than the caller waits.
        case nothingDue(until: Timestamp)
        /// The host cannot be reached or trusted.
        case unreachable(String)
        /// APNs does not accept the credential.
        case credential(String)
        /// Too many answers say that the requests are wrong.
        case breaker(String)
        /// So many tokens seem wrong that the host or the topic must be.
        case environmentMismatch(PushEnvironment, String)
        /// Paused or cancelled from elsewhere.
        case stateChanged(RunState)
        /// It, its campaign or everything is not to be sent until a person lifts the stop.
        case stopped(StopOrder)
        /// The sender that led the run has gone or given it up: another sender takes it.
        case leadGone
        /// This sender's heartbeats take too long, and others send the run.
        case storeTooSlow(String)

        /// Why a person has to look at what the answers say; `nil`: no person has to.
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
