extension Fleet {
    /// What is done to a sender, or to the server.
    enum Blow: Hashable {
        /// SIGKILL, and started again at once.
        case kill
        /// SIGKILL, and started again after the others have taken its work over.
        case loss
        /// SIGSTOP for longer than others wait for it, and SIGCONT.
        case freeze
        /// The same while no clock of the machine's goes on: a virtual machine that its hypervisor pauses.
        case pause
        case serverRestart
        /// `kill -9` of all its processes.
        case serverCrash
        /// SIGKILL of one of its backends while others wait for the disk, see ``CommitWindow``.
        case backendLoss
        /// For longer than others wait for a sender.
        case serverAway
        /// The same; then a person or a timer is the first to come back.
        case serverAwayThen(Order)
        /// A person, or the start of another daemon, while all go on.
        case order(Order)
        /// `kill -9` of all its processes, and its standby takes over.
        case failover
        /// The same where the standby had been behind for a second and a half.
        case lateFailover
        /// Others have all connections for some seconds, and the senders have lost theirs.
        case connectionsUsedUp
        /// Somebody holds all locks that the server has room for.
        case locksUsedUp
        /// Nothing more fits on the disk of the tables, or on that of the write-ahead log, for some seconds.
        case diskFull
        /// Each of ``mixture`` once, in an order of chance, and again.
        case mixed
        /// Between sender and server: before a commit, between it and its answer, in silence after it, or all of them.
        case cut

        /// For whoever starts meanwhile, too.
        var takesServerAway: Bool { [.mixed, .connectionsUsedUp, .locksUsedUp, .cut, .backendLoss].contains(self) }
    }

    /// What a person or a timer says, or a daemon that starts.
    enum Order: String, Sendable, CaseIterable {
        case pause, resume, stop, runDue, cancel
        /// `serve` on one more machine, or there again.
        case serve

        /// Of a run; what follows lets it go on, unless it is cancelled.
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
