extension Fleet {
    /// A fault of a sender, of the server or of the connection between them.
    enum Blow: Hashable {
        /// SIGKILL. The sender is started again immediately.
        case kill
        /// SIGKILL. The sender is started again after the others have taken over its work.
        case loss
        /// SIGSTOP for longer than the takeover timeout, then SIGCONT.
        case freeze
        /// Like `freeze`, while all clocks of the machine stand still. A hypervisor pauses a virtual machine in this
        /// way.
        case pause
        case serverRestart
        /// `kill -9` of all server processes.
        case serverCrash
        /// SIGKILL of a server's backend while others wait for the disk, see ``CommitWindow``.
        case backendLoss
        /// The server is down for longer than the takeover timeout.
        case serverAway
        /// Like `serverAway`. A command of a person or a timer is then the first client of the server.
        case serverAwayThen(Order)
        /// A command of a person, or the start of another daemon, while all senders continue.
        case order(Order)
        /// `kill -9` of all server processes, after which the standby takes over.
        case failover
        /// Like `failover`, with a standby that no longer received the primary's last changes.
        case lateFailover
        /// Other clients use all connections for some seconds, and the senders have lost theirs.
        case connectionsUsedUp
        /// Another client holds all locks for which the server has memory.
        case locksUsedUp
        /// The disk of the tables, or of the write-ahead log, is full for some seconds.
        case diskFull
        /// Each of ``mixture`` once, in random order, then again.
        case mixed
        /// The connection is cut before a commit, before its response, silently after it, or all connections are cut.
        case cut

        /// Whether a sender that starts in the meantime may find no server.
        var takesServerAway: Bool { [.mixed, .connectionsUsedUp, .locksUsedUp, .cut, .backendLoss].contains(self) }
    }

    /// A command of a person or a timer, or the start of a daemon.
    enum Order: String, Sendable, CaseIterable {
        case pause, resume, stop, runDue, cancel
        /// `serve` on an additional machine. If it already runs, it is started again.
        case serve

        /// Returns the commands for a run. The last one lets the run continue, unless the run is cancelled.
        func commands(_ run: String) -> [[String]] {
            switch self {
            case .pause: [["pause", run], ["resume", run, "--no-send"]]
            case .resume: [["resume", run, "--no-send"]]
            case .stop: [["stop", run, "--reason", "it stands still"], ["resume", run, "--no-send"]]
            case .runDue: [["run", "--due"]]
            case .cancel: [["cancel", run, "--reason", "nobody needs it any more"]]
            case .serve: []
            }
        }
    }
}
