/// Who opened a store: written down with every event of that process, whatever the event is about.
package struct StoreProcess: Hashable, Sendable {
    package enum Origin: String, Hashable, Sendable {
        /// A person, or a program of theirs.
        case command
        case daemon
        /// A systemd unit or cron.
        case timer
    }

    /// Nil where nobody said, as in tests.
    package var uid: Int64?
    package var user: String?
    /// The arguments, the program first; values that may be secret are left out by whoever fills it in.
    package var command: String?
    package var origin: Origin

    package init(uid: Int64? = nil, user: String? = nil, command: String? = nil, origin: Origin = .command) {
        self.uid = uid
        self.user = user
        self.command = command
        self.origin = origin
    }
}
