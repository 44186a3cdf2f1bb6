/// In whose name something is done: a person, a schedule, or the process that sends a run. The audit puts it on record
/// with everything that is changed.
package struct Actor: Hashable, Sendable, ExpressibleByStringLiteral {
    /// From where it was asked for.
    package enum Origin: String, Hashable, Sendable, CaseIterable {
        /// A person at a terminal, or a program of theirs.
        case command
        case daemon
        /// A systemd unit or cron.
        case timer
    }

    /// How the name is known.
    package enum Authentication: Hashable, Sendable {
        /// The operating system vouches for the account.
        case account(uid: Int64, user: String)
        /// Nobody said, as in tests.
        case none
    }

    /// For a person to read, and for the log: `anna (uid 1000)`, or the name of the process that has a run.
    package var name: String
    package var authentication: Authentication
    package var origin: Origin
    /// The arguments, the program first; values that may be secret are left out by whoever fills it in.
    package var command: String?

    package init(
        _ name: String, authentication: Authentication = .none, origin: Origin = .command, command: String? = nil
    ) {
        self.name = name
        self.authentication = authentication
        self.origin = origin
        self.command = command
    }

    /// A name alone.
    package init(stringLiteral name: String) { self.init(name) }

    /// The same authority under another name: a process that sends a run for somebody.
    package func named(_ name: String) -> Actor {
        var actor = self
        actor.name = name
        return actor
    }
}
