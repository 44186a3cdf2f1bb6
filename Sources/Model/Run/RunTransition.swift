/// The state of a run, stored as its word. What may follow what is ``RunTransition``'s to say.
package enum RunState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Created, not yet begun. Goes to `running`, `paused`, `cancelled`, `failed` or `missed`.
    case scheduled
    /// Freezing, sending or waiting. Goes to `paused`, `finished`, `cancelled` or `failed`.
    case running
    /// Stopped by a person or a breaker. Goes to `running`, `cancelled` or `failed`, and to `finished` when the last
    /// outcomes arrive after the pause was asked for.
    case paused
    /// Every delivery has an end state. Final.
    case finished
    /// Stopped for good by a person; the rest is `suppressed(cancelled)`. Final.
    case cancelled
    /// Met an error it could not go on with. Final.
    case failed
    /// Found later than `late_by_max`, not sent. Final.
    case missed
}

extension RunState {
    /// True when nothing will ever happen to the run again.
    package var isFinal: Bool {
        switch self {
        case .finished, .cancelled, .failed, .missed: true
        case .scheduled, .running, .paused: false
        }
    }

    /// Those in which something may still happen, in the order of the cases.
    package static var unfinished: [RunState] { allCases.filter { !$0.isFinal } }
}

/// Why a run paused itself, stored as its word.
package enum RunHalt: String, Hashable, Sendable, Codable, CaseIterable {
    case unreachable, credential, breaker
}

/// A step of a run from one state to another: which are allowed, whoever asks and whatever store records it.
package struct RunTransition: Hashable, Sendable {
    package var from: RunState
    package var to: RunState

    package init(from: RunState, to: RunState) {
        self.from = from
        self.to = to
    }

    package var isAllowed: Bool { Self.successors(of: from).contains(to) }

    /// The states that may follow one, which is never among them; none for a final state.
    package static func successors(of state: RunState) -> [RunState] {
        switch state {
        case .scheduled: [.running, .paused, .cancelled, .failed, .missed]
        case .running: [.paused, .finished, .cancelled, .failed]
        // The last outcomes may arrive after somebody asked for a pause.
        case .paused: [.running, .finished, .cancelled, .failed]
        case .finished, .cancelled, .failed, .missed: []
        }
    }

    /// What becomes of a request by a person or the scheduler, who do not hold the run.
    package enum Request: Hashable, Sendable {
        case carriedOut
        /// The run is in that state already.
        case nothingToDo
        case refused
    }

    /// Asking for the state a run is in changes nothing, with two exceptions: `cancelled` again ends a run whose owner
    /// died before it could, and a person's `paused` makes a pause that the run took by itself (`isPausedByItself`) wait
    /// for that person. A run is `finished` by its owner only.
    package func request(isPausedByItself: Bool) -> Request {
        if from == to {
            let isRepeatable = to == .cancelled || (to == .paused && isPausedByItself)
            return isRepeatable ? .carriedOut : .nothingToDo
        }
        return isAllowed && to != .finished ? .carriedOut : .refused
    }
}
