package import Model
package import Store

/// A store in SQLite or PostgreSQL. It implements the roles with the statements that both engines share. The store
/// of an engine adds only what differs.
package protocol RelationalStore: AllRoles {
    associatedtype Session: SQLSession

    /// Whether times come from the caller's clock, not from a server's.
    var goesByCallersClock: Bool { get }

    /// Reads one snapshot; cancellable.
    func snapshot<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value

    /// Runs one transaction, not cancellable once begun.
    @discardableResult
    func transaction<Value: Sendable>(
        _ promise: WritePromise, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value

    /// Reads one snapshot, with the devices that a campaign's audience or `audience_sql` selects.
    func selecting<Value: Sendable>(
        _ campaign: Campaign, now: Timestamp,
        _ body: @escaping @Sendable (Session, AudienceSelection) throws -> Value
    ) async throws -> Value

    /// Returns the devices to prune with an id above `after`, in order of id: some thousand at most.
    func pruneCandidates(
        _ policy: PrunePolicy, after: Int64
    ) async throws -> [(device: Int64, reason: PrunePolicy.Reason)]

    /// Deletes those of the devices that still match, in one transaction. Returns the reason for each of these.
    func prune(_ devices: [Int64], _ policy: PrunePolicy) async throws -> [PrunePolicy.Reason]

    /// Drops the deliveries of a run that has a summary.
    func dropOutcomes(of run: Int64, now: Timestamp) async throws -> OutcomeDrop

    /// Returns the engine's checks of its own structures and of the rules of its columns.
    func engineChecks(faultsMax: Int) async throws -> [Verification.Check]

    // The following members are for stores that several machines share.

    /// Throws ``StoreError/senderLost(_:)`` if other senders have taken over from this sender.
    func beatBeforeClaim(_ sender: String) async throws
    func requireNotLost(_ sender: String, _ db: Session) throws
    /// Throws ``StoreError/inUse(path:reason:)`` if a sender of any machine is alive. No sender can start until the
    /// transaction ends. A store of one machine has no such record, and its caller checks the machine's senders.
    func requireNoSender(_ db: Session) throws
    /// Returns which senders are alive. Changes nothing.
    func living(_ db: Session) throws -> OwnerLiveness.IsAlive
    /// Returns which senders of the run are alive. The transaction takes over from the dead senders.
    func living(_ db: Session, at run: Int64) throws -> OwnerLiveness.IsAlive
    /// Releases leases that may exist although this sender did not get the response to their commit.
    func settleBeforeRelease(now: Timestamp) async throws
    /// Tells the store that a sender has left or ended the run. `state` is the run's state after that.
    func released(_ run: Int64, _ state: RunState) async
    /// The time by which the store's clock was ahead of this machine's when webhook messages were last claimed.
    var webhooksAhead: Duration { get nonmutating set }
}

/// The durability that a write transaction promises.
package enum WritePromise: Hashable, Sendable {
    /// A power failure may lose the latest commits, but never a part of one.
    case quick
    /// The same as ``quick`` for a sender, which retries and therefore does not wait long for other writers.
    case quickOfSender
    /// The commit is on disk when the call returns.
    case durable
    /// The same as ``durable`` on a server, because the server may lose power while its client continues. The same
    /// as ``quick`` in a local file.
    case durableOnServer
    case durableOfSender
}
