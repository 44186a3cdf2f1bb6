package import Model

/// The senders of a store that several machines share. Each sender sends a heartbeat once a second, timed by the
/// store's own clock. A sender without a heartbeat for too long is fenced permanently.
///
/// On one machine, kernel locks show which senders are alive, and a run has one sender at a time. A store of one
/// machine therefore records nothing here; the extension below implements its results.
package protocol SenderLog: Sendable {
    /// The time without a heartbeat after which others take over a sender's work; `nil` for a store of one machine.
    var takeoverAfter: Duration? { get }

    /// The store's time, which is the same for all its senders; `nil` if each machine uses its own clock.
    var storeTime: (@Sendable () -> Timestamp)? { get }

    /// Records a sender's heartbeat and its facts. Throws ``StoreError/senderLost(_:)`` if others took over its work:
    /// the sender must start nothing more under this name.
    func beat(_ sender: String, _ facts: SenderFacts) async throws

    /// Returns the ended senders that left work and may not be taken over yet, with the time of their last heartbeat.
    /// This machine's locks show that they have ended, but their trust window may still be open.
    func endedLately() async throws -> [String: Timestamp]

    /// Returns the remaining quiet time after an outage of the store, in which no sender is fenced. Returns `nil` if
    /// no unresponsive sender left work that waits for its end.
    func quietTimeLeft() async throws -> Duration?

    /// Returns the senders that send now, and those that did and had a heartbeat lately.
    func senders() async throws -> [SenderOnRecord]

    /// Joins a run that another sender, its lead, carries out. A participant may lease and settle, but neither freezes
    /// nor ends the run. Returns `false` if the store allows one sender per run, or if the run has no lead or is not
    /// running.
    func join(_ run: Int64, by sender: Actor) async throws -> Bool

    /// Leaves a run. The last participant that leaves a cancelled run ends it.
    func leave(_ run: Int64, by sender: Actor, now: Timestamp) async throws

    /// Returns the other participants of a run.
    func participants(of run: Int64, apartFrom sender: String) async throws -> RunParticipants

    /// Returns the senders that take part in these runs and may still start requests, or have not said that they
    /// stopped.
    func senders(at runs: [Int64]) async throws -> [SenderAtRun]

    /// Removes a sender that exits normally, unless it still owns a run or a lease.
    func retire(_ sender: String) async throws

    /// Returns the dead senders that own the run or one of its leases, and fences them permanently. The caller recovers
    /// their leases.
    ///
    /// A sender's own machine may fence the sender before other machines may. Each run that this machine then takes
    /// over renews the fenced sender's last heartbeat, until the takeover timeout has passed since the fence. So other
    /// machines wait while this machine recovers the sender's runs from its journal.
    ///
    /// - Parameter owner: the run's owner, which has not yet started to send. The result includes the owner, so that
    ///   its own earlier leases are recovered too.
    func takeOverLeases(of run: Int64, besides owner: String?) async throws -> Set<String>
}

extension SenderLog {
    package var takeoverAfter: Duration? { nil }
    package var storeTime: (@Sendable () -> Timestamp)? { nil }
    package func beat(_ sender: String, _ facts: SenderFacts) async throws {}
    package func endedLately() async throws -> [String: Timestamp] { [:] }
    package func quietTimeLeft() async throws -> Duration? { nil }
    package func senders() async throws -> [SenderOnRecord] { [] }
    package func join(_ run: Int64, by sender: Actor) async throws -> Bool { false }
    package func leave(_ run: Int64, by sender: Actor, now: Timestamp) async throws {}
    package func participants(of run: Int64, apartFrom sender: String) async throws -> RunParticipants {
        RunParticipants()
    }
    package func senders(at runs: [Int64]) async throws -> [SenderAtRun] { [] }
    package func retire(_ sender: String) async throws {}

    /// Whether several senders may take part in one run.
    package var isShared: Bool { takeoverAfter != nil }
}

/// The facts that a sender publishes about itself.
package struct SenderFacts: Hashable, Sendable, Codable {
    /// The command that started it, for instance `fanfare serve`.
    package var command: String?
    /// Whether it obeys schedules, or would if it were the coordinator.
    package var isDaemon = false
    package var lanes = 0
    /// The number of pushes per second that got a response within the last seconds.
    package var rate = 0.0
    package var runs: [Int64] = []
    /// For a daemon: a hash of the campaigns and templates that it obeys.
    package var files: String?
    /// Whether its heartbeats take too long to keep its trust window open, see ``HeartbeatPace``. `nil` for an older
    /// version, which does not report this.
    package var isTooSlow: Bool?

    package init() {}
}

package struct SenderOnRecord: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable {
        case alive
        /// No heartbeat for some seconds.
        case silent
        /// Other senders took over its work, or will.
        case gone
    }

    package var name: String
    /// The number of the sender among those of the store. A later sender has a higher number.
    package var term: Int64
    package var since: Timestamp
    package var heardAt: Timestamp
    package var state: State
    /// Whether it starts due runs, polls feeds and does maintenance.
    package var isCoordinator: Bool
    package var facts: SenderFacts

    package init(
        name: String, term: Int64, since: Timestamp, heardAt: Timestamp, state: State, isCoordinator: Bool,
        facts: SenderFacts
    ) {
        self.name = name
        self.term = term
        self.since = since
        self.heardAt = heardAt
        self.state = state
        self.isCoordinator = isCoordinator
        self.facts = facts
    }
}

extension Sequence<SenderOnRecord> {
    /// The living daemons whose campaigns and templates differ from the coordinator's. The runs that start would depend
    /// on which of them coordinates.
    package var withOtherFiles: [SenderOnRecord] {
        guard let files = first(where: \.isCoordinator)?.facts.files else { return [] }
        return filter { sender in
            sender.state != .gone && sender.facts.isDaemon && sender.facts.files.map { $0 != files } ?? false
        }
    }
}

/// The other participants of a run.
package struct RunParticipants: Hashable, Sendable {
    /// Whether the run has a living lead other than the caller.
    package var hasOtherLead = false
    /// The number of living others, including the lead.
    package var others = 0
    /// The number of others whose heartbeats are fast enough to send.
    package var fit = 0
    /// The number of fit others that take part in the run and have sent nothing lately.
    package var idle = 0
    /// The leases of the run under the caller's name.
    package var leases: Set<Int64> = []
    /// The number of dead senders that own the run or left something in flight.
    package var gone = 0

    package init() {}
}

/// A sender that takes part in a run.
package struct SenderAtRun: Hashable, Sendable {
    package var run: Int64
    package var name: String
    /// Whether its trust window may be open: its last heartbeat is younger than ``SenderTrust/window``.
    package var mayStart: Bool
    package var heardAt: Timestamp

    package init(run: Int64, name: String, mayStart: Bool, heardAt: Timestamp) {
        self.run = run
        self.name = name
        self.mayStart = mayStart
        self.heardAt = heardAt
    }
}
