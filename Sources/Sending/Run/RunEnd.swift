package import Model
import Store

/// The state in which ``Pipeline/execute(_:as:idleLimit:watch:)`` left a run.
package enum RunEnd: Hashable, Sendable {
    /// Every delivery has a final state.
    case finished
    /// Finished without a request to APNs: the audience was empty, or every device was suppressed.
    case noDeviceReached(String)
    /// Finished, but too few deliveries were accepted. See ``Store/RunSuccess``.
    case unsuccessful(String)
    /// Stopped on request. The next start continues with the remaining deliveries.
    case stoppedEarly
    /// Nothing is due before this moment. The run must be continued then.
    case waiting(until: Timestamp)
    case cancelled
    /// Paused by a person. The run waits for `fanfare resume`.
    case paused(by: String, reason: String?)
    /// Another living process owns the run.
    case busy(owner: String, heartbeat: Timestamp)
    /// The endpoint or the store does not respond in time. The reason says what to check.
    case unreachable(String)
    case credentialRefused(String)
    /// Paused until a person resumes the run.
    case breakerOpen(String)
    /// A stage failed its check, or the run is larger than usual.
    case halted(String)
    case awaitingApproval(String)
    case late(String)
    /// A stop of the run, its campaign or everything is in force until a person lifts it.
    case stopped(StopOrder)
    /// The run is over and recorded as such: found too late, refused before anything was sent, or failed with an error.
    case missed(String)
    case refused(String)
    case failed(String)
}

extension RunEnd {
    /// Creates the end that the record of a run shows. Returns `nil` if the run is to continue.
    package init?(_ run: Run) {
        let reason = run.stateReason ?? "no reason given"
        switch run.state {
        case .scheduled, .running: return nil
        case .finished where run.halt == .unsuccessful:
            self =
                RunSuccess.hasNoRequest(run.counts, reason: reason) ? .noDeviceReached(reason) : .unsuccessful(reason)
        case .finished: self = .finished
        case .cancelled: self = .cancelled
        case .missed: self = .missed(reason)
        case .failed: self = run.isRefused ? .refused(reason) : .failed(reason)
        case .paused:
            if let person = run.pausedBy {
                self = .paused(by: person, reason: run.stateReason)
                return
            }
            switch run.halt {
            case .credential: self = .credentialRefused(reason)
            case .breaker: self = .breakerOpen(reason)
            case .stage, .volume, .grown, .restored: self = .halted(reason)
            case .approval: self = .awaitingApproval(reason)
            case .late: self = .late(reason)
            case .unreachable, .unsuccessful, nil: self = .unreachable(reason)
            }
        }
    }

    /// Creates the end for a process that found the run owned by another process, may not take part, and read the
    /// record again.
    ///
    /// If the owner ended the run between the two reads, the caller gets that end, not the name of a process that has
    /// exited. Returns `nil` if the owner released the run before its end, so that the caller can claim it.
    package init?(held run: Run, by owner: String, heartbeat: Timestamp) {
        guard run.owner != owner else {
            self = .busy(owner: owner, heartbeat: heartbeat)
            return
        }
        self.init(run)
    }

    /// Creates the end for a sender that has left a run for this reason. Returns `nil` if the run's record shows the
    /// end.
    init?(leftFor reason: StopReason) {
        switch reason {
        case .unreachable(let reason), .storeTooSlow(let reason): self = .unreachable(reason)
        case .credential(let reason): self = .credentialRefused(reason)
        case .breaker(let reason), .environmentMismatch(_, let reason): self = .breakerOpen(reason)
        case .nothingDue(let moment): self = .waiting(until: moment)
        case .stopRequested: self = .stoppedEarly
        case .stopped(let order): self = .stopped(order)
        case .stateChanged, .leadGone: return nil
        }
    }

    /// Whether the same command continues the run. Otherwise the run is over, or waits for a person.
    package var goesOnWithNextStart: Bool {
        switch self {
        case .stoppedEarly, .waiting, .busy, .unreachable, .credentialRefused: true
        case .finished, .noDeviceReached, .unsuccessful, .cancelled, .paused, .breakerOpen, .halted, .awaitingApproval,
            .late, .stopped, .missed, .refused, .failed:
            false
        }
    }
}

/// The reason why a run cannot start at all.
package enum SendingError: Error, Hashable, CustomStringConvertible {
    case runVanished(Int64)
    case noEndpoint(topic: String)

    package var description: String {
        switch self {
        case .runVanished(let id): "run \(id) is no longer in the store; check whether the store was replaced"
        case .noEndpoint(let topic): "no app with topic \(topic) in the configuration; add one under `apps`"
        }
    }
}
