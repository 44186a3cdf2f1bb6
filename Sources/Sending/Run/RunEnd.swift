package import Model

/// How ``Pipeline/execute(_:as:idleLimit:watch:)`` left a run.
package enum RunEnd: Hashable, Sendable {
    /// Every delivery has an end state.
    case finished
    /// Asked to stop: what is left goes on with the next start.
    case stoppedEarly
    /// Nothing is due before this moment: somebody is to go on with it then.
    case waiting(until: Timestamp)
    case cancelled
    /// By a person, whose `resume` it waits for.
    case paused(by: String, reason: String?)
    /// Another living process has the run.
    case busy(owner: String, heartbeat: Timestamp)
    /// Paused, with a reason a person can act on.
    case unreachable(String)
    case credentialRefused(String)
    case breakerOpen(String)
}

/// What keeps a run, or the daemon, from starting at all.
package enum SendingError: Error, Hashable, CustomStringConvertible {
    case runVanished(Int64)
    case noEndpoint(topic: String)
    /// There is one daemon per store.
    case otherDaemon(String)

    package var description: String {
        switch self {
        case .runVanished(let id): "run \(id) is not in the store any more; was the store replaced?"
        case .otherDaemon(let owner): "another daemon works on this store (\(owner)); stop it first"
        case .noEndpoint(let topic): "no app with topic \(topic) in the configuration; add one under `apps`"
        }
    }
}
