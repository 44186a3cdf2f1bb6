package import Model
import Store

/// How ``Pipeline/execute(_:as:idleLimit:watch:)`` left a run.
package enum RunEnd: Hashable, Sendable {
    /// Every delivery has an end state.
    case finished
    /// Finished without a request to APNs: the audience was empty, or every device was left out.
    case nobodyReached(String)
    /// Finished, but too few deliveries were accepted, see ``Store/RunSuccess``.
    case unsuccessful(String)
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
    /// Paused until a person lets it go on.
    case breakerOpen(String)
    /// A stage did not prove itself, or the run is more than usual.
    case halted(String)
    case awaitingApproval(String)
    case late(String)
    /// It, its campaign or everything: until somebody lifts that.
    case stopped(StopOrder)
    /// Over, and on record as such: found too late, refused before anything was sent, or met by an error.
    case missed(String)
    case refused(String)
    case failed(String)
}

extension RunEnd {
    /// What the record says of a run; nil while it is to go on.
    package init?(_ run: Run) {
        let reason = run.stateReason ?? "no reason given"
        switch run.state {
        case .scheduled, .running: return nil
        case .finished where run.halt == .unsuccessful:
            self =
                RunSuccess.hasNoRequest(run.counts, reason: reason) ? .nobodyReached(reason) : .unsuccessful(reason)
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

    /// How a run ended for a process that found it held, and looks again since it may not take part.
    ///
    /// Between the two looks the owner may have ended the run: the caller then gets that end, not the name of a process
    /// that has exited. `nil`: the owner let go of the run before its end, and the caller can claim it.
    package init?(held run: Run, by owner: String, heartbeat: Timestamp) {
        guard run.owner != owner else {
            self = .busy(owner: owner, heartbeat: heartbeat)
            return
        }
        self.init(run)
    }

    /// Whether the same command goes on with the run. Otherwise it is over, or waits for a person's word.
    package var goesOnWithNextStart: Bool {
        switch self {
        case .stoppedEarly, .waiting, .busy, .unreachable, .credentialRefused: true
        case .finished, .nobodyReached, .unsuccessful, .cancelled, .paused, .breakerOpen, .halted, .awaitingApproval,
            .late, .stopped, .missed, .refused, .failed:
            false
        }
    }
}

/// What keeps a run, or the daemon, from starting at all.
package enum SendingError: Error, Hashable, CustomStringConvertible {
    case runVanished(Int64)
    case noEndpoint(topic: String)
    /// There is one daemon per store.
    case otherDaemon(String)
    /// Nobody could tell which sender is alive.
    case noLocks(path: String, reason: String)
    /// The folder of the senders, or a file in it, cannot be read or written.
    case senderFolder(path: String, reason: String)
    /// It cannot be read, and somebody holds a lock on it.
    case lockFileDamaged(path: String)
    /// Another process holds its first byte: a starting sender for some milliseconds, a restore for longer.
    case lockFileBusy(path: String)
    /// The lock file under this sender is another one, or none.
    case postLost(path: String)
    /// A sender that has a number of this folder's, and no lock in it, sends heartbeats.
    case folderCopied(path: String, sender: String)

    package var description: String {
        switch self {
        case .runVanished(let id): "run \(id) is not in the store any more; was the store replaced?"
        case .otherDaemon(let owner): "another daemon works on this store (\(owner)); stop it first"
        case .noLocks(let path, let reason):
            "the file system of \(path) keeps no locks of open files (\(reason)), so that nobody could tell which sender is "
                + "alive; put the store on a local file system, such as ext4 or xfs"
        case .senderFolder(let path, let reason):
            "\(path): \(reason); whoever sends needs this folder beside the store, and must be able to write to it"
        case .lockFileDamaged(let path):
            "\(path) is damaged, and somebody sends; stop all who send from this store, then delete it"
        case .lockFileBusy(let path):
            "\(path): another process has restored the store, or has been starting, for some seconds; wait until it is done, "
                + "or end it, then run the same command again"
        case .postLost(let path):
            "\(path) was deleted or replaced while this process was sending, so that others take it for gone; it has stopped. "
                + "Run the same command again, and leave the folder alone while anything is sent"
        case .folderCopied(let path, let sender):
            "the sender \(sender) has no lock in \(path) and still sends heartbeats: the folder is a copy of another machine's. "
                + "Stop what sends from this copy, then delete the folder; each machine makes its own"
        case .noEndpoint(let topic): "no app with topic \(topic) in the configuration; add one under `apps`"
        }
    }
}
