package import Model

/// The senders of a store that several machines share: each is heard of once a second, by the store's own clock, and one
/// that was silent for too long is gone for good.
///
/// On one machine locks of the kernel say who lives and a run has one sender at a time: what follows has nothing to remember
/// there, which is what the extension below says.
package protocol SenderLog: Sendable {
    /// How long a sender may be silent before others take its work over; nil: the store is one machine's.
    var takeoverAfter: Duration? { get }

    /// The time as the store tells it to all its senders; nil: it is each machine's own.
    var storeTime: (@Sendable () -> Timestamp)? { get }

    /// Says that a sender is there, and how it is. ``StoreError/senderLost(_:)`` when others took its work over: it must
    /// start nothing more under this name.
    func beat(_ sender: String, _ facts: SenderFacts) async throws

    /// Senders that have ended by this machine's locks and left work, and whose last heartbeat is so young that they may not
    /// be taken over yet: their trust window may be open. With the time of that heartbeat.
    func endedLately() async throws -> [String: Timestamp]

    /// How long the quiet time after an outage lasts, if a sender that left work is silent; nil: nothing waits for its end.
    func quietTimeLeft() async throws -> Duration?

    /// Who sends, and who did and was heard of lately.
    func senders() async throws -> [SenderOnRecord]

    /// Takes part in a run that another sender, its lead, carries out: may lease and settle, and neither freezes nor ends it.
    /// False: a run has one sender here, or nobody leads it, or it is not going on.
    func join(_ run: Int64, by sender: Actor) async throws -> Bool

    /// Ends that. The last to leave a run that was cancelled brings it to its end.
    func leave(_ run: Int64, by sender: Actor, now: Timestamp) async throws

    /// Who else is at a run.
    func company(of run: Int64, apartFrom sender: String) async throws -> RunCompany

    /// The senders that take part in these runs and still may start requests, or have not said that they stopped.
    func senders(at runs: [Int64]) async throws -> [SenderAtRun]

    /// Forgets a sender that exits in good order, unless something stands under its name.
    func retire(_ sender: String) async throws

    /// Returns the dead senders that own the run or one of its leases, and fences them permanently. Their leases are the
    /// caller's to recover.
    ///
    /// The machine of a sender may fence it before others may. Each run that it takes over then renews the sender's last
    /// heartbeat, until the takeover timeout has passed since the fence: others wait while this machine recovers the
    /// sender's runs with its journal.
    ///
    /// - Parameter owner: has the run, and sends nothing of it yet: what it left itself is to be recovered as well.
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
    package func company(of run: Int64, apartFrom sender: String) async throws -> RunCompany { RunCompany() }
    package func senders(at runs: [Int64]) async throws -> [SenderAtRun] { [] }
    package func retire(_ sender: String) async throws {}

    /// Several senders may be at one run.
    package var isShared: Bool { takeoverAfter != nil }
}

/// What a sender says of itself, for others to see.
package struct SenderFacts: Hashable, Sendable, Codable {
    /// As it was started: `fanfare serve`.
    package var command: String?
    /// It obeys schedules, or would, were it the coordinator.
    package var isDaemon = false
    package var lanes = 0
    /// Pushes that were answered within the last seconds, by second.
    package var rate = 0.0
    package var runs: [Int64] = []
    /// Of a daemon: a hash of the campaigns and templates that it obeys.
    package var files: String?
    /// Its heartbeats take too long to keep its trust window open, see ``HeartbeatPace``. `nil`: an older version, which
    /// does not say.
    package var isTooSlow: Bool?

    package init() {}
}

package struct SenderOnRecord: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable {
        case alive
        /// Not heard of for some seconds.
        case silent
        /// Others took its work over, or will.
        case gone
    }

    package var name: String
    /// Counts the senders of the store, each of which has one: who comes later has a higher one.
    package var term: Int64
    package var since: Timestamp
    package var heardAt: Timestamp
    package var state: State
    /// It starts what is due, polls feeds and tidies up.
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
    /// Living daemons whose campaigns and templates are not those of the coordinator: what is started would depend on which
    /// of them coordinates.
    package var withOtherFiles: [SenderOnRecord] {
        guard let files = first(where: \.isCoordinator)?.facts.files else { return [] }
        return filter { sender in
            sender.state != .gone && sender.facts.isDaemon && sender.facts.files.map { $0 != files } ?? false
        }
    }
}

/// The others at a run.
package struct RunCompany: Hashable, Sendable {
    /// The lead lives, and is not the one that asked.
    package var hasOtherLead = false
    /// Alive, the lead among them.
    package var others = 0
    /// Those of the others whose heartbeats are fast enough to send.
    package var fit = 0
    /// Those of the fit ones that take part in the run and have sent nothing lately.
    package var idle = 0
    /// The leases of the run under the name of the sender that asked.
    package var leases: Set<Int64> = []
    /// Left something in flight, or stand under the run, and are gone.
    package var gone = 0

    package init() {}
}

/// A sender that takes part in a run.
package struct SenderAtRun: Hashable, Sendable {
    package var run: Int64
    package var name: String
    /// Its trust window may be open: its last heartbeat is younger than ``SenderTrust/window``.
    package var mayStart: Bool
    package var heardAt: Timestamp

    package init(run: Int64, name: String, mayStart: Bool, heardAt: Timestamp) {
        self.run = run
        self.name = name
        self.mayStart = mayStart
        self.heardAt = heardAt
    }
}
