package import Model

/// Runs and what was done about them: made, found, owned, changed, and the audit of it all.
///
/// Each method is one transaction. A run is sent by one owner at a time: whoever claims it writes its outcomes.
package protocol RunLog: SenderLog {
    /// Throws ``StoreError/displaced(path:)`` if the store's file was moved, replaced or deleted since it was opened.
    func requireInPlace() throws

    /// The run of this occurrence, made now unless it is there: a timer, a daemon and a retried call get the same one.
    /// An existing run keeps its own definition, whatever is given here. A test run is kept out of ``runs(limit:includingTests:)``,
    /// ``latestRun(campaign:includingTests:)`` and the analysts' `delivery_view`.
    ///
    /// - Parameters:
    ///   - notes: put on record with a new run, in its transaction.
    ///   - files: the hashes of the files it was made from, for the record.
    ///   - volume: what it is weighed by, against what is on record of its campaign and of whoever starts it: where
    ///     ``VolumePolicy`` holds it, it is made paused, see ``RunHalt/volume``. Nil: it is not weighed.
    ///   - limits: what its audience is held to when it is written down, see ``DeliveryQueue/freeze(_:by:now:onBatch:)``.
    ///     Nil: any will do.
    func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool)

    /// Why a run that was made now would be made paused; nil: it would not.
    func volumeHold(_ request: VolumeRequest, now: Timestamp) async throws -> VolumeHold?

    /// A test run for one device, frozen already: the audience, the holdout and the guards do not matter, everything
    /// else is as in any run. The delivery is suppressed at once where the device may not be sent to. A background push
    /// counts against the device's silent budget as any other.
    ///
    /// - Parameter variant: nil: the one the device would get.
    ///
    /// ``StoreError/noSuchDevice(_:)``, ``StoreError/deviceOfOtherTopic(_:topic:expected:)``, and
    /// ``StoreError/occurrenceTaken(campaign:occurrence:run:)``: a test never goes on with another run.
    func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run

    /// Puts an occurrence on record that will not be sent: a run in a final state, made so in one transaction; a failed
    /// one is recorded as refused. False when the occurrence has a run already; then nothing is changed.
    func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool

    /// Nil: there is no such run.
    func run(_ id: Int64) async throws -> Run?

    func run(campaign: String, occurrence: String) async throws -> Run?

    /// The run of a campaign that was created last; found by index.
    func latestRun(campaign: String, includingTests: Bool) async throws -> Run?

    /// The latest run of a campaign that is in this state, test runs left out; found by index.
    func latestRun(campaign: String, state: RunState) async throws -> Run?

    /// Newest first. A list leaves out each run whose row cannot be read, see ``unreadableRuns()``; a method that is asked
    /// for one run throws ``StoreError/unreadableRun(run:reason:)`` for it.
    func runs(limit: Int, includingTests: Bool) async throws -> [Run]

    /// The runs that lists leave out: those that have not ended, and those among the latest hundred. Oldest first.
    func unreadableRuns() async throws -> [UnreadableRun]

    /// A page of those asked for, newest first, found without reading the others.
    ///
    /// - Parameter id: the last of the page before; nil for the first.
    func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run]

    /// Which of these occurrences have a run, whatever became of it.
    func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String>

    /// Runs that wait for a sender, and have no living owner: created, interrupted, or paused with a halt that ends
    /// without a person (``RunHalt/waitsForPerson``). The caller asks ``HaltRetry`` when to try the last kind again.
    /// Test runs are left to the process that made them, but for those that were handed over, see ``TestOccurrence``.
    ///
    /// - Parameters:
    ///   - owner: whoever asks. A run that it owns waits as well, since an error may have made it let go of one.
    ///   - inHand: those that it has not let go of; known before it asks.
    func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run]

    /// Runs that a feed started and that are not over, whoever owns them: those of a poll that was cut short, too. A
    /// paused run is among them if its halt ends without a person, see ``openRuns(for:inHand:)``.
    func openFeedRuns(campaign: String) async throws -> [Run]

    /// The runs of a campaign that are not over and whose occurrence begins like this, oldest first and at most
    /// ``UnfinishedRuns/countMax``; test runs left out, found by index.
    func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run]

    /// Runs that paused themselves and wait for a person's word, see ``RunHalt/waitsForPerson``, oldest first; test runs
    /// left out.
    func haltedRuns() async throws -> [Run]

    /// Takes the run for `owner` and sets it running, unless another owner is alive, however long it has been silent, a
    /// person paused the run, a breaker did, or it is late, which is put on record here as ``LatePolicy`` says. Before it
    /// sends it recovers what the owner before left in flight, see ``DeliveryQueue/leasesLeft(_:)``. A run in a
    /// final state is ``StoreError/runIsOver(run:state:)``.
    func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim

    /// Notes when `owner` was last heard of, for whoever looks at the run, and returns the state as it is stored: `paused` or `cancelled` is a person's request
    /// to stop. ``StoreError/lostClaim(run:holder:)`` when another has the run.
    func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState

    /// Gives the run up in the given state; `now` is when its owner was last heard of. `running` only gives up the lock:
    /// the run goes on with the next claim.
    /// `finished` needs every delivery to have an end state, otherwise ``StoreError/notFinished(run:pending:leased:)``; a
    /// run that a breaker has paused meanwhile stays as it is.
    /// With `cancelled` the rest becomes suppressed, with `cancelled` and `failed` what is in flight becomes unknown.
    func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, halt: RunHalt?, now: Timestamp
    ) async throws

    /// Puts on record that the run's owner stops it until a person lets it go on, and why, before it gives it up: a crash
    /// must not forget it. Nothing changes where somebody else has paused or cancelled the run.
    func halt(_ run: Int64, by owner: Actor, _ halt: RunHalt, reason: String, now: Timestamp) async throws

    /// Changes the state at a person's request, or the scheduler's; the owner learns of it at its next heartbeat.
    /// Cancelling a run that nobody sends ends it at once; otherwise its owner ends it. A run paused here stays so until
    /// it is changed to `running` here. Somebody who asks for `running` has decided that it is not too late: the time that
    /// nobody sent it counts from then.
    /// ``StoreError/illegalChange(run:from:to:)`` for an arrow the states do not have.
    ///
    /// - Parameter seen: the state that the person decided on; ``StoreError/runChanged(run:)`` if the run is in another state
    ///   in the transaction of the change. `nil` changes the run in whatever state it is.
    func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor, seen: SeenRun?
    ) async throws

    /// The stages of a run, in order, and how far they have come; none in a run without.
    func stages(of run: Int64) async throws -> [StageRecord]

    /// Lets the stage begin that the run is paused for, and the run go on. False: it waits for no approval.
    ///
    /// - Parameter stage: the index of the stage that the person has seen. Nothing changes if the run waits for another one.
    func approveStage(of run: Int64, stage: Int, by actor: Actor, now: Timestamp) async throws -> Bool

    /// Runs whose owner is gone and did not give them up, and such as were cancelled and are not ended yet.
    func abandonedRuns() async throws -> [Run]

    /// Gives up a run for an owner that is gone, once its leases are recovered; a cancelled one is brought to its end.
    /// False: the owner was another one meanwhile, and nothing is changed.
    func abandon(_ run: Int64, of owner: String?, now: Timestamp) async throws -> Bool

    /// Whoever stands under a run or a lease, alive or gone: what these wrote down elsewhere may still be needed.
    func ownersOnRecord() async throws -> Set<String>

    /// What the deliveries that are not sent yet wait for. Cheap: it reads the nearest thousand of each environment by
    /// index, and counts those of one more moment.
    func waits(of run: Int64, now: Timestamp) async throws -> RunWaits

    /// What keeps the run's sender from sending, for ``waits(of:now:)``; replaces what it said before.
    /// ``StoreError/lostClaim(run:holder:)`` when another has the run.
    func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws

    /// What the run's last sender said so, alive or gone: whoever takes the run from it leaves these endpoints alone, too.
    func holds(of run: Int64) async throws -> [EndpointHold]

    /// Compares the wall clock with what it showed when somebody last looked, and puts on record when it was set since:
    /// by an event, and for the silent budget, see ``RollingWindow``. Waits for a next attempt keep their length. Whoever
    /// looks first among all processes of a machine writes it down; each step is handed out once, to be told.
    func noteClocks(_ reading: ClockReading, by actor: Actor) async throws -> ClockStep?

    /// Steps of the wall clock that were noticed since a moment, oldest first.
    func clockSteps(since moment: Timestamp) async throws -> [ClockStep]

    /// Puts something on record that belongs to no other change.
    ///
    /// - Parameter files: SHA-256 in hex of the files it is about, by path.
    func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws

    /// The latest `limit` of them, oldest first.
    ///
    /// - Parameter run: nil for all, those of no run among them.
    func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent]

    /// A page of those asked for, newest first; those of one run, actor or kind are found by index.
    ///
    /// - Parameter id: the cursor of the page before; nil for the first.
    func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage
}

extension RunLog {
    /// A store on a server has no file.
    package func requireInPlace() throws {}

    package func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool = false, now: Timestamp, by actor: Actor
    ) async throws -> (run: Run, isNew: Bool) {
        try await createRun(
            definition, occurrence: occurrence, isTest: isTest, now: now, by: actor, notes: [], files: [:], volume: nil,
            limits: nil)
    }

    package func createRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String] = [:], volume: VolumeRequest? = nil, limits: ReachLimits? = nil
    ) async throws -> (run: Run, isNew: Bool) {
        try await createRun(
            definition, occurrence: occurrence, isTest: false, now: now, by: actor, notes: notes, files: files,
            volume: volume, limits: limits)
    }

    /// Test runs left out.
    package func latestRun(campaign: String) async throws -> Run? {
        try await latestRun(campaign: campaign, includingTests: false)
    }

    /// Newest first, test runs left out.
    package func runs(limit: Int) async throws -> [Run] { try await runs(limit: limit, includingTests: false) }

    /// A test run that gets the variant its device would get.
    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, now: Timestamp, by actor: Actor
    ) async throws -> Run {
        try await createTestRun(
            definition, occurrence: occurrence, device: device, variant: nil, now: now, by: actor)
    }

    /// Gives up a run that met no trouble.
    package func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, now: Timestamp
    ) async throws {
        try await release(run, by: owner, state: state, reason: reason, halt: nil, now: now)
    }

    package func recordEvent(kind: EventKind, run: Int64?, actor: Actor, detail: String, now: Timestamp) async throws {
        try await recordEvent(kind: kind, run: run, actor: actor, detail: detail, files: [:], now: now)
    }

    /// Of one run, oldest first.
    package func events(run: Int64) async throws -> [StoreEvent] {
        try await events(run: run, since: nil, limit: .max)
    }
}

package enum RunClaim: Hashable, Sendable {
    case claimed
    /// Another owner that is alive has the run; when it was last heard of decides nothing.
    case held(by: String, heartbeat: Timestamp)
    /// A person paused it: only ``RunLog/change(_:to:reason:now:by:)`` to `running` lets it go on.
    case paused(by: String, reason: String?)
    /// A breaker paused it; it waits for a person in the same way.
    case breakerOpen(String)
    /// Found unfinished too late, now or by an earlier claim; it waits for a person in the same way.
    case late(String)
    /// A stage did not prove itself, or it is more than usual; it waits for a person in the same way.
    case halted(String)
    /// The next stage waits for ``approveStage(of:stage:by:now:)``.
    case awaitingApproval(String)
    /// It, its campaign or everything is stopped; nothing of it is changed.
    case stopped(StopOrder)
    /// Late only by a wall clock that is not confirmed before then, see ``ConfirmedTime``; nothing of it is changed.
    case unconfirmed(until: Timestamp)
}

/// Something to be put on record with a run that is created, in the same transaction.
package struct EventNote: Hashable, Sendable {
    package var kind: EventKind
    package var detail: String

    package init(kind: EventKind, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

/// One line of the audit trail.
package struct StoreEvent: Hashable, Sendable {
    package var at: Timestamp
    /// An ``EventKind`` by its word; one that a later version wrote is kept as it stands.
    package var kind: String
    package var run: Int64?
    package var campaign: String?
    /// In whose name: a person, the scheduler, or the process that holds a run.
    package var actor: Actor
    package var detail: String
    /// SHA-256 in hex of the files it was about, by path.
    package var files: [String: String]

    package init(
        at: Timestamp, kind: String, run: Int64?, campaign: String?, actor: Actor, detail: String,
        files: [String: String]
    ) {
        self.at = at
        self.kind = kind
        self.run = run
        self.campaign = campaign
        self.actor = actor
        self.detail = detail
        self.files = files
    }
}

/// Who is alive is not for a store to know: it is told by whoever opens it.
package enum OwnerLiveness {
    /// Whether the process behind an owner's name may be alive. False only where it has ended for certain.
    package typealias IsAlive = @Sendable (_ owner: String) -> Bool
}

/// The state of a run as a person saw it: a change may be held to it.
package struct SeenRun: Hashable, Sendable {
    private let state: RunState
    private let halt: RunHalt?
    private let reason: String?
    private let pausedBy: String?

    package init(_ run: Run) {
        state = run.state
        halt = run.halt
        reason = run.stateReason
        pausedBy = run.pausedBy
    }

    /// Throws ``StoreError/runChanged(run:)`` unless the run is as it was seen.
    package func require(_ run: Run) throws {
        guard SeenRun(run) == self else { throw StoreError.runChanged(run: run.id) }
    }
}

extension RunLog {
    package func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor
    ) async throws {
        try await change(run, to: state, reason: reason, now: now, by: actor, seen: nil)
    }
}
