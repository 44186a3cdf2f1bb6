package import Model
package import Store

/// A store of SQLite or PostgreSQL: what both do by the same statements stands here once, as the roles' own methods. An
/// adapter has what truly differs.
package protocol RelationalStore: AllRoles {
    associatedtype Session: SQLSession

    /// Whether the time is the caller's, not a server's.
    var goesByCallersClock: Bool { get }

    /// One read snapshot; cancellable.
    func snapshot<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value

    /// One transaction, not cancellable once begun.
    @discardableResult
    func transaction<Value: Sendable>(
        _ promise: WritePromise, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value

    /// Drops the deliveries of a run whose summary stands for them, and returns how many there were; nil if the run has
    /// no summary or a reader holds its deliveries.
    func dropOutcomes(of run: Int64, now: Timestamp) async throws -> Int?

    /// What the engine finds in its own structures, and in the rules of its columns.
    func engineChecks(faultsMax: Int) async throws -> [Verification.Check]

    // What stores that several machines share do besides.

    /// Throws ``StoreError/senderLost(_:)`` if others have taken over what this sender had.
    func beatBeforeClaim(_ sender: String) async throws
    func requireNotLost(_ sender: String, _ db: Session) throws
    /// Judges now which senders of the run live. The transaction takes over those that do not.
    func living(_ db: Session, at run: Int64) throws -> OwnerLiveness.IsAlive
    /// Gives back leases that were perhaps made without their sender hearing of it.
    func settleBeforeRelease(now: Timestamp) async throws
    /// A sender has left the run, or ended it, in this state.
    func released(_ run: Int64, _ state: RunState) async
    /// How far the store's clock was ahead of ours when a webhook's messages were taken last.
    var webhooksAhead: Duration { get nonmutating set }
}

/// What a transaction that writes promises.
package enum WritePromise: Hashable, Sendable {
    /// A power loss may take the last of them, whole ones and none before them.
    case quick
    /// The same for a sender, which asks again by itself: it does not wait long for other writers.
    case quickOfSender
    /// On disk when the call returns.
    case durable
    /// On a server as ``durable``, because a server may lose its power while its client lives on. On this machine's own
    /// file as ``quick``.
    case durableOnServer
    case durableOfSender
}
