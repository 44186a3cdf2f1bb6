package import Model

/// The ownership of runs. Each method is one transaction.
///
/// A run has one owner at a time, which claims it, sends it and records its outcomes. In a store that several machines
/// share, other senders may take part, see ``SenderLog``.
package protocol RunOwnership: SenderLog {
    /// Throws ``StoreError/displaced(path:)`` if the store's file was moved, replaced or deleted since it was opened.
    func requireInPlace() throws

    /// Claims the run for `owner` and sets it running. The claim fails if another owner is alive, however old its
    /// heartbeat is. It also fails if a person or a breaker paused the run, or if the run is late. Lateness is recorded
    /// here, as ``LatePolicy`` decides. Before the new owner sends, it recovers the deliveries that the previous owner
    /// left in flight, see ``DeliveryQueue/abandonedLeases(_:)``. A run in a final state throws
    /// ``StoreError/runIsOver(run:state:)``.
    func claim(_ run: Int64, by owner: Actor, now: Timestamp) async throws -> RunClaim

    /// Records the owner's heartbeat, and returns the stored state: `paused` or `cancelled` is a person's request to
    /// stop. Throws ``StoreError/lostClaim(run:holder:)`` if another owner has the run.
    func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState

    /// Releases the run in the given state; `now` is the time of its owner's last heartbeat. `running` only releases
    /// the lock: the run continues with the next claim. `finished` requires an end state for every delivery, otherwise
    /// the method throws ``StoreError/notFinished(run:pending:leased:)``. A run that a breaker has paused meanwhile
    /// stays as it is. With `cancelled`, the remaining deliveries become suppressed. With `cancelled` and `failed`,
    /// deliveries in flight become unknown.
    func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, halt: RunHalt?, now: Timestamp
    ) async throws

    /// Records that the run's owner stops it until a person resumes it, with the reason. This is recorded before the
    /// release, so that a crash does not lose it. Nothing changes if another actor has paused or cancelled the run.
    func halt(_ run: Int64, by owner: Actor, _ halt: RunHalt, reason: String, now: Timestamp) async throws

    /// Returns the runs whose owner is gone and did not release them, and the cancelled runs that have not ended yet.
    func abandonedRuns() async throws -> [Run]

    /// Returns the runs that `sender` owns or takes part in, and those of which it holds leases.
    func runs(of sender: String) async throws -> [Run]

    /// Releases a run for an owner that is gone, after its leases are recovered. A cancelled run is ended. Returns
    /// `false`, and changes nothing, if the run has another owner meanwhile.
    func abandon(_ run: Int64, of owner: String?, now: Timestamp) async throws -> Bool

    /// Returns the owners of all runs and leases, alive or dead. Data that these owners wrote outside the store may
    /// still be needed.
    func ownersOnRecord() async throws -> Set<String>

    /// Records what keeps the run's sender from sending, for ``waits(of:now:)``. The record replaces the earlier one.
    /// Throws ``StoreError/lostClaim(run:holder:)`` if another owner has the run.
    func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws

    /// Returns the holds that the run's last sender recorded, whether that sender is alive or dead. A sender that
    /// takes over the run does not send to these endpoints either.
    func holds(of run: Int64) async throws -> [EndpointHold]
}

extension RunOwnership {
    /// Does nothing: a store on a server has no file.
    package func requireInPlace() throws {}

    /// Releases a run without a halt.
    package func release(
        _ run: Int64, by owner: Actor, state: RunState, reason: String?, now: Timestamp
    ) async throws {
        try await release(run, by: owner, state: state, reason: reason, halt: nil, now: now)
    }
}

package enum RunClaim: Hashable, Sendable {
    case claimed
    /// Another living owner has the run. The age of its heartbeat does not matter.
    case held(by: String, heartbeat: Timestamp)
    /// A person paused the run: only ``RunLog/change(_:to:reason:now:by:)`` to `running` resumes it.
    case paused(by: String, reason: String?)
    /// A breaker paused the run, which waits for a person in the same way.
    case breakerOpen(String)
    /// The run was found unfinished too late, now or by an earlier claim, and waits for a person in the same way.
    case late(String)
    /// The run was halted, for instance by a stage or its volume, and waits for a person in the same way.
    case halted(String)
    /// The next stage waits for ``approveStage(of:stage:by:now:)``.
    case awaitingApproval(String)
    /// The run, its campaign or everything is stopped; the run is unchanged.
    case stopped(StopOrder)
    /// The run is late only by a wall clock that is not confirmed before this time, see ``ConfirmedTime``; the run is
    /// unchanged.
    case unconfirmed(until: Timestamp)
}

/// The test of whether an owner is alive. A store cannot know this: the code that opens the store provides the test.
package enum OwnerLiveness {
    /// Whether the process behind an owner's name may be alive. The result is `false` only if the process has certainly
    /// ended.
    package typealias IsAlive = @Sendable (_ owner: String) -> Bool
}
