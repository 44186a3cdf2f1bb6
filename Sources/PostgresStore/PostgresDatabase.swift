import Model
import RelationalStore
package import Store
import Synchronization

/// The store on PostgreSQL: one database, shared by any number of senders.
///
/// Each transaction is a closure that runs on the thread of its connection. Methods may be called from any task. A
/// write that has begun is finished even if its task is cancelled. Reads stop at cancellation with
/// `CancellationError`. A transaction that loses a race against another one is run again. If a commit gets no
/// response, the server is queried for the outcome of the transaction.
///
/// The times of leases, outcomes, the silent budget, shared paces and webhook messages are the server's; see
/// ``StoreTime``.
///
/// These writes wait for the disk (`synchronous_commit` on), so that a power failure of the server does not lose them:
///
/// - a lease, which must be on disk before its pushes are sent: ``lease(_:)``
/// - outcomes of pushes: ``settle(run:_:now:)``, and recovery
/// - changes that are reported to a caller, such as ``release(_:by:state:reason:halt:now:)`` and
///   ``change(_:to:reason:now:by:)``
///
/// A power failure may lose the latest of the other commits, but never a part of one.
///
/// Errors are ``StoreError``.
package final class PostgresDatabase: Sendable {
    /// The maximum number of short writing transactions that run at the same time.
    static let writersMax = 3
    /// The maximum number of long writing transactions that run at the same time.
    static let bulkWritersMax = 2
    /// The number of connections for heartbeats: one that writes, and two that read at the same time, for the stops
    /// and for the other senders of a run.
    static let beatConnections = 3
    /// The number of connections for expensive reads. It is above ``ReadQueue/atOnceMax``, so that the daemon's own
    /// reads never wait for outside callers. A campaign whose count takes long also leaves some connections to other
    /// campaigns.
    static let expensiveReadersMax = ReadQueue.atOnceMax + 4

    let pool: PostgresPool
    /// The connections for writes that may take longer than ``PostgresLimits/callTime``, such as imports and indexes.
    /// Imports of one app wait for each other, and leases and settlements must not wait with them.
    private let bulk: PostgresPool
    /// The connections for expensive reads, so that the sender, stops and pages never wait for such reads.
    let expensive: PostgresPool
    let isAlive: OwnerLiveness.IsAlive
    /// The connections for heartbeats and the reads that belong to them, so that these wait for no other work.
    let beats: PostgresPool
    let heartbeats = SharedCall<RunHeartbeats.Beat, RunHeartbeats.Answer>()
    let participantQueries = SharedCall<ParticipantsQuery, RunParticipants>()
    let stopQuestions = SharedCall<Bool, StopOrders>()
    /// How far the store's clock was ahead of this process's clock when webhook messages were last claimed.
    private let ahead = Mutex<Duration>(.zero)
    package let namespace: (high: UInt64, low: UInt64)
    /// See ``SenderLog/takeoverAfter``.
    package let takeoverAfter: Duration?
    let clock = ServerClock()
    package let departed: StoreMove?
    let unheard = Mutex<Set<UnheardLease>>([])
    let dueBounds = DueBounds()
    /// The server-side name of the writing transactions of this process's sender; `nil` before its first heartbeat.
    private let activity = Mutex<String?>(nil)

    /// Creates the object for a database that is known to contain a store; see
    /// ``open(url:access:takeoverAfter:isAlive:time:)``.
    init(
        _ pool: PostgresPool, namespace: (high: UInt64, low: UInt64), departed: StoreMove?, takeoverAfter: Duration?,
        isAlive: @escaping OwnerLiveness.IsAlive
    ) {
        self.takeoverAfter = takeoverAfter
        beats =
            takeoverAfter == nil
            ? pool
            : PostgresPool(beside: pool, writers: 1, readers: Self.beatConnections - 1, yields: false)
        self.pool = pool
        bulk = PostgresPool(beside: pool, writers: Self.bulkWritersMax, readers: 0)
        expensive = PostgresPool(beside: pool, writers: 0, readers: Self.expensiveReadersMax)
        self.namespace = namespace
        self.departed = departed
        self.isAlive = isAlive
    }

    package var webhooksAhead: Duration {
        get { ahead.withLock { $0 } }
        set { ahead.withLock { $0 = newValue } }
    }

    /// The address without its password.
    package var path: String { pool.address.description }

    /// Reads from one snapshot at unknown cost, so the read counts as expensive.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await read(.expensive, body)
    }

    /// Reads from one snapshot; cancellable. An expensive read uses separate connections and counts against the
    /// caller's ``ReadAllowance``.
    func read<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        switch cost {
        case .short: return try await read(.reading, from: pool, body)
        case .expensive:
            return try await ReadAllowance.spend { [self] in
                try await read(.reading.within(Self.expensiveTimeMax), from: expensive, body)
            }
        }
    }

    /// The time limit of an expensive read, which may scan millions of rows.
    private static let expensiveTimeMax: Duration = .seconds(3600)

    func read<Value: Sendable>(
        _ options: PostgresTransaction, from pool: PostgresPool,
        _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await translating {
            for _ in 1..<Self.readsMax {
                do {
                    return try await pool.read(options, body)
                } catch let error as PostgresError where DeliveryTable.isMissing(error) {}
            }
            return try await pool.read(options, body)
        }
    }

    /// The number of attempts of a read. If a table of deliveries is dropped after a snapshot was taken, it is
    /// missing for that snapshot too. The next attempt then finds that the run was pruned.
    private static let readsMax = 4

    /// Writes in one transaction, which cannot be cancelled once it has begun.
    @discardableResult
    func write<Value: Sendable>(
        _ promise: PostgresTransaction, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await write(promise, to: promise.limit > PostgresLimits.callTime ? bulk : pool, body)
    }

    @discardableResult
    func write<Value: Sendable>(
        _ promise: PostgresTransaction, to pool: PostgresPool,
        _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        let named = promise.named(activity.withLock { $0 })
        return try await translating { try await pool.write(named, body) }
    }

    /// Names later writing transactions after this sender, so that a takeover of the sender ends them.
    func named(_ sender: String) { activity.withLock { $0 = SenderRow.activity(of: sender) } }

    /// Runs statements that are not allowed inside a transaction.
    func outsideTransactions(_ body: @escaping @Sendable (PostgresSession) throws -> Void) async throws {
        try await translating { try await bulk.session(limit: .seconds(3600), body) }
    }

    /// Ends the connections, and does not wait for their calls.
    package func close() throws {
        for connections in [pool, bulk, expensive, beats] { connections.shutDown() }
    }

    private func translating<Value: Sendable>(_ call: () async throws -> Value) async throws -> Value {
        do { return try await call() } catch { throw StoreError.translated(error, path: path) }
    }
}

/// A lease that may exist although its caller never received it.
struct UnheardLease: Hashable {
    let id: Int64
    let run: Int64
}

extension PostgresDatabase: RelationalStore {}

/// An error for content of the database that this program never writes.
struct StoreDamage: Error {
    let what: String

    init(_ what: String) { self.what = what }
}

extension StoreError {
    /// Returns the error as ``StoreError``. Cancellation and errors of callers' closures pass unchanged.
    static func translated(_ error: any Error, path: String) -> any Error {
        if let value = UnreadableValue(error) { return StoreError.corrupt(path: path, reason: "\(value)") }
        if let damage = error as? StoreDamage { return StoreError.corrupt(path: path, reason: damage.what) }
        guard let error = error as? PostgresError else { return error }
        switch error.kind {
        case .diskFull: return StoreError.diskFull(path: path)
        // While one server takes over from another, the new server is read-only for a short time.
        case .readOnly: return StoreError.unreachable(path: path, reason: "\(error)")
        case .lostRace, .lockTimeout: return StoreError.busy(path: path)
        case .wrongLogin, .noDatabase, .permission:
            // The store was opened with this login. A sender waits with the responses that it holds.
            return error.isOfOpening
                ? StoreError.accessWithdrawn(path: path, reason: "\(error)")
                : StoreError.accessRefused(path: path, reason: "\(error)")
        case .damaged: return StoreError.corrupt(path: path, reason: "\(error)")
        default: break
        }
        if case .outcomeUnknown = error { return StoreError.outcomeUnknown(path: path, reason: "\(error)") }
        return error.isPassing
            ? StoreError.unreachable(path: path, reason: "\(error)")
            : StoreError.failed(path: path, reason: "\(error)")
    }
}
