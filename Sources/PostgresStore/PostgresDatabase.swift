import Model
import RelationalStore
package import Store
import Synchronization

/// The store on PostgreSQL: one database, shared by any number of senders.
///
/// All statements run below this type, in transactions whose closures run on a connection's own thread. Methods may be
/// called from any task. A write that has begun is finished even when its task is cancelled; reads stop with
/// `CancellationError`. A transaction that lost a race against another one is run again. If a commit is not answered,
/// the server is asked for the outcome of its transaction.
///
/// Times are the server's, see ``StoreTime``: those of leases and outcomes, the silent budget, shared paces and webhook
/// messages.
///
/// These writes wait for the disk (`synchronous_commit` on), so that a power failure of the server does not lose them:
///
/// - a lease, which must be safe before its pushes leave: ``lease(_:)``
/// - outcomes of pushes: ``settle(run:_:now:)``, and recovery
/// - changes that are reported to a caller, such as ``release(_:by:state:reason:halt:now:)`` and
///   ``change(_:to:reason:now:by:)``
///
/// A power failure may lose the latest of the other commits: whole ones, and none before them.
///
/// Errors are ``StoreError``.
package final class PostgresDatabase: Sendable {
    /// The number of writing transactions that run side by side.
    static let writersMax = 3
    /// One connection that writes, and two that read side by side: the stops, and the other senders of a run.
    static let beatConnections = 3
    /// More than ``ReadQueue/atOnceMax``, so that the daemon's own reads never wait for outside callers. A campaign
    /// whose count takes long also leaves some connections to the others.
    static let expensiveReadersMax = ReadQueue.atOnceMax + 4

    let pool: PostgresPool
    /// For expensive reads only, so that the sender, stops and pages never wait for them.
    let expensive: PostgresPool
    let isAlive: OwnerLiveness.IsAlive
    /// For heartbeats and the reads that go with them, so that these wait for no other work.
    let beats: PostgresPool
    let heartbeats = SharedCall<RunHeartbeats.Beat, RunHeartbeats.Answer>()
    let participantQueries = SharedCall<ParticipantsQuery, RunParticipants>()
    let stopQuestions = SharedCall<Bool, StopOrders>()
    /// How far the store's clock was ahead of this process's clock when webhook messages were last taken.
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

    /// Makes the store of a database that is known to hold one, see ``open(_:access:isAlive:)``.
    init(
        _ pool: PostgresPool, namespace: (high: UInt64, low: UInt64), departed: StoreMove?, takeoverAfter: Duration?,
        isAlive: @escaping OwnerLiveness.IsAlive
    ) {
        self.takeoverAfter = takeoverAfter
        beats =
            takeoverAfter == nil
            ? pool
            : PostgresPool(
                pool.address, writers: 1, readers: Self.beatConnections - 1, time: pool.time)
        self.pool = pool
        expensive = PostgresPool(pool.address, writers: 0, readers: Self.expensiveReadersMax, time: pool.time)
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

    /// Reads from one snapshot; cancellable. An expensive read has connections of its own, and keeps to the caller's
    /// ``ReadAllowance``.
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

    /// The longest time of a read that goes through millions of rows.
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

    /// The number of attempts of a read. A table of deliveries that is dropped after a snapshot was taken is missing in
    /// that snapshot too. The next snapshot shows that its run was pruned.
    private static let readsMax = 4

    /// Writes in one transaction, which cannot be cancelled once it has begun.
    @discardableResult
    func write<Value: Sendable>(
        _ promise: PostgresTransaction, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await write(promise, to: pool, body)
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
        try await translating { try await pool.session(limit: .seconds(3600), body) }
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

/// The database holds something that this program does not write.
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
        // During a takeover between servers, the new one is read-only for a while.
        case .readOnly: return StoreError.unreachable(path: path, reason: "\(error)")
        case .lostRace, .lockTimeout: return StoreError.busy(path: path)
        case .wrongLogin, .noDatabase, .permission: return StoreError.accessRefused(path: path, reason: "\(error)")
        case .damaged: return StoreError.corrupt(path: path, reason: "\(error)")
        default: break
        }
        if case .outcomeUnknown = error { return StoreError.outcomeUnknown(path: path, reason: "\(error)") }
        return error.isPassing
            ? StoreError.unreachable(path: path, reason: "\(error)")
            : StoreError.failed(path: path, reason: "\(error)")
    }
}
