package import Model

/// Runs: how they are created, found, changed by a person, and released to their next stage.
///
/// Each method is one transaction.
package protocol RunLog: Sendable {
    /// Returns the run of this occurrence, and creates the run if there is none. A timer, a daemon and a retried call
    /// get the same run. An existing run keeps its own definition, whatever is given here. A test run is not in the
    /// analysts' `delivery_view`. ``runs(limit:includingTests:)`` and ``latestRun(campaign:includingTests:)`` return a
    /// test run only if tests are included.
    ///
    /// - Parameters:
    ///   - notes: events that are recorded with a new run, in its transaction.
    ///   - files: the hashes of the files that the run was created from, for the audit log.
    ///   - volume: the figures that ``VolumePolicy`` compares with the recorded runs of the campaign and of the actor.
    ///     If the policy holds the run, the run is created paused, see ``RunHalt/volume``. `nil` if the volume is not
    ///     checked.
    ///   - limits: the limits of its audience at the freeze, see ``DeliveryQueue/freeze(_:by:now:onBatch:)``; `nil` if
    ///     there are none.
    func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool)

    /// Returns why a run that is created now would be paused; `nil` if it would not be.
    func volumeHold(_ request: VolumeRequest, now: Timestamp) async throws -> VolumeHold?

    /// Creates a test run for one device. The run is frozen from the start. The audience, the holdout and the guards
    /// do not matter; everything else is as in any run. The delivery is suppressed immediately if the device may not
    /// be sent to. A background push counts against the device's silent budget like any other.
    ///
    /// - Parameter variant: `nil` for the variant that the device would get.
    ///
    /// Throws ``StoreError/noSuchDevice(_:)``, ``StoreError/deviceOfOtherTopic(_:topic:expected:)``, and
    /// ``StoreError/occurrenceTaken(campaign:occurrence:run:)``: a test never continues another run.
    func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run

    /// Records an occurrence that will not be sent: a run in a final state, in one transaction. A failed run is
    /// recorded as refused. Returns `false`, and changes nothing, if the occurrence has a run already.
    func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool

    /// Returns `nil` if there is no such run.
    func run(_ id: Int64) async throws -> Run?

    func run(campaign: String, occurrence: String) async throws -> Run?

    /// Returns the run of a campaign that was created last; found by index.
    func latestRun(campaign: String, includingTests: Bool) async throws -> Run?

    /// Returns the latest run of a campaign that is in this state, without test runs; found by index.
    func latestRun(campaign: String, state: RunState) async throws -> Run?

    /// Returns the runs, newest first. A list leaves out each run whose row cannot be read, see ``unreadableRuns()``. A
    /// method that reads one run throws ``StoreError/unreadableRun(run:reason:)`` for it.
    func runs(limit: Int, includingTests: Bool) async throws -> [Run]

    /// Returns unreadable runs, oldest first: those that have not ended, and those among the latest hundred runs.
    func unreadableRuns() async throws -> [UnreadableRun]

    /// Returns a page of the matching runs, newest first, without reading the others.
    ///
    /// - Parameter id: the last run of the previous page; `nil` for the first page.
    func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run]

    /// Returns the same page with the runs that cannot be read. For callers that must not leave one out silently.
    func listedRuns(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [ListedRun]

    /// Returns the matching runs that were created next after a run, oldest first, without reading the others.
    func runs(_ filter: RunFilter, after id: Int64, limit: Int) async throws -> [Run]

    /// Returns the occurrences among these that have a run, whatever its outcome.
    func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String>

    /// Returns the time that the store knows nothing about; `nil` if neither it nor the store that it was moved from
    /// was ever restored from a backup.
    func restoreGap() async throws -> RestoreGap?

    /// Returns the runs that wait for a sender and have no living owner: created, interrupted, or paused with a halt
    /// that ends without a person (``RunHalt/waitsForPerson``). For the last kind, ``HaltRetry`` tells the caller when
    /// to try again. Test runs are left to the process that created them, except those that were handed over, see
    /// ``TestOccurrence``.
    ///
    /// - Parameters:
    ///   - owner: the caller. A run that the caller owns is included unless it is in `inHand`, because an error may
    ///     have made the caller drop the run.
    ///   - inHand: the runs that the caller is carrying out, determined before the call. They are left out.
    func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run]

    /// Returns the unfinished runs that a feed started, whatever their owner, including those of an interrupted poll. A
    /// paused run is included if its halt ends without a person, see ``openRuns(for:inHand:)``.
    func openFeedRuns(campaign: String) async throws -> [Run]

    /// Returns the unfinished runs of a campaign whose occurrence begins with a prefix, oldest first, at most
    /// ``UnfinishedRuns/countMax``. Test runs are left out. The runs are found by index.
    func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run]

    /// Returns the runs that paused themselves and wait for a person, see ``RunHalt/waitsForPerson``, oldest first.
    /// Test runs are left out.
    func haltedRuns() async throws -> [Run]

    /// Changes the state at the request of a person or the scheduler. The owner learns of the change at its next
    /// heartbeat. Cancelling a run that has no sender ends it immediately; otherwise its owner ends it. A run that
    /// this method pauses stays paused until this method changes it to `running`. A person who requests `running` has
    /// decided that the run is not too late: its time without a sender counts from then. Throws
    /// ``StoreError/illegalChange(run:from:to:)`` for a transition that is not allowed.
    ///
    /// - Parameter seen: the state that the person decided on. If the run is in another state in the transaction of the
    ///   change, the method throws ``StoreError/runChanged(run:)``. `nil` changes the run in any state.
    func change(
        _ run: Int64, to state: RunState, reason: String?, now: Timestamp, by actor: Actor, seen: SeenRun?
    ) async throws

    /// Returns the stages of a run in order, with their progress. The list is empty for a run without stages.
    func stages(of run: Int64) async throws -> [StageRecord]

    /// Approves the stage that the run is paused for, and resumes the run. Returns `false` if the run waits for no
    /// approval.
    ///
    /// - Parameters:
    ///   - stage: the index of the stage that the person has seen. Nothing changes if the run waits for another one.
    ///   - variant: the index of the variant that the person chose for the stage. It must be given if and only if the
    ///     run waits for this choice.
    func approveStage(
        of run: Int64, stage: Int, variant: Int?, by actor: Actor, now: Timestamp
    ) async throws -> Bool

    /// Returns the causes for which the unsent deliveries wait. Cheap: it reads the nearest thousand of each
    /// environment by index, and counts those of one more moment.
    func waits(of run: Int64, now: Timestamp) async throws -> RunWaits
}

extension RunLog {
    /// Approves a stage that waits for no choice of a variant.
    package func approveStage(of run: Int64, stage: Int, by actor: Actor, now: Timestamp) async throws -> Bool {
        try await approveStage(of: run, stage: stage, variant: nil, by: actor, now: now)
    }

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

    /// Returns the latest run, without test runs.
    package func latestRun(campaign: String) async throws -> Run? {
        try await latestRun(campaign: campaign, includingTests: false)
    }

    /// Returns the runs, newest first, without test runs.
    package func runs(limit: Int) async throws -> [Run] { try await runs(limit: limit, includingTests: false) }

    /// Creates a test run with the variant that its device would get.
    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, now: Timestamp, by actor: Actor
    ) async throws -> Run {
        try await createTestRun(
            definition, occurrence: occurrence, device: device, variant: nil, now: now, by: actor)
    }
}

/// An event that is recorded with a new run, in the same transaction.
package struct EventNote: Hashable, Sendable {
    package var kind: EventKind
    package var detail: String

    package init(kind: EventKind, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

/// The state of a run as a person saw it. A change may require that the run is still in this state.
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
