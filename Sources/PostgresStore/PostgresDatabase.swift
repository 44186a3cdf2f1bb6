import Model
import RelationalStore
package import Store
import Synchronization

/// The durable truth on PostgreSQL: one database, for as many senders as share it.
///
/// Every statement stands below this type, in transactions whose closures run on a connection's own thread. Methods may be
/// called from any task. A write that has begun is finished even when its task is cancelled; reads stop with
/// `CancellationError`. A transaction that lost a race against another one is run again, and of one whose commit was not
/// answered the server is asked what became of it.
///
/// Time is the server's, see ``StoreTime``: of leases and outcomes, the silent budget, shared paces and webhooks' messages.
///
/// Power failures of the server: what must be safe before a push leaves, its outcome, and what somebody is told waits for
/// the disk (`synchronous_commit` on): ``lease(_:)``, ``settle(run:_:now:)``, recovery, ``release(_:by:state:reason:halt:now:)``,
/// ``change(_:to:reason:now:by:)``. Of the rest the power may take the latest commits, whole ones and none before them.
///
/// Errors are ``StoreError``.
package final class PostgresDatabase: Sendable {
    /// So many transactions are written side by side.
    static let writersMax = 3
    /// One that writes, and two that read side by side: the stops, and the other senders of a run.
    static let beatConnections = 3
    /// Above ``ReadTurns/atOnceMax``, so that the daemon's own reads never wait for outside callers, and so that a
    /// campaign that takes long to count leaves some to the others.
    static let expensiveReadersMax = ReadTurns.atOnceMax + 4

    let pool: PostgresPool
    /// For expensive reads alone: the sender, stops and pages never wait for them.
    private let expensive: PostgresPool
    let isAlive: OwnerLiveness.IsAlive
    /// For heartbeats and what is asked with them: they wait for no other work.
    let beats: PostgresPool
    let heartbeats = SharedCall<RunHeartbeats.Beat, RunHeartbeats.Answer>()
    let companies = SharedCall<CompanyQuestion, RunCompany>()
    let stopQuestions = SharedCall<Bool, StopOrders>()
    /// How far the store's clock was ahead of ours when a webhook's messages were taken last.
    private let ahead = Mutex<Duration>(.zero)
    package let namespace: (high: UInt64, low: UInt64)
    /// See ``SenderLog/takeoverAfter``.
    package let takeoverAfter: Duration?
    let clock = ServerClock()
    package let departed: StoreMove?
    let unheard = Mutex<Set<UnheardLease>>([])
    let dueBounds = DueBounds()
    /// What the writing transactions of this process's sender are called on the server; nil before its first heartbeat.
    private let activity = Mutex<String?>(nil)

    /// Of a database that is known to hold a store, see ``open(_:access:isAlive:)``.
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

    /// One read snapshot of unknown cost: it is expensive.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await read(.expensive, body)
    }

    /// One read snapshot; cancellable. An expensive one has connections of its own, and keeps to the caller's
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

    /// A table of deliveries that is dropped after a snapshot was taken is gone for it as well; the next snapshot knows that
    /// its run was pruned.
    private static let readsMax = 4

    /// One transaction, not cancellable once begun.
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

    /// From now on transactions that write are those of this sender: a takeover of it ends them.
    func named(_ sender: String) { activity.withLock { $0 = SenderRow.activity(of: sender) } }

    /// Statements that may stand in no transaction.
    func outsideTransactions(_ body: @escaping @Sendable (PostgresSession) throws -> Void) async throws {
        try await translating { try await pool.session(limit: .seconds(3600), body) }
    }

    private func translating<Value: Sendable>(_ call: () async throws -> Value) async throws -> Value {
        do { return try await call() } catch { throw StoreError.translated(error, path: path) }
    }
}

/// A lease that may have been made without its caller hearing of it.
struct UnheardLease: Hashable {
    let id: Int64
    let run: Int64
}

extension PostgresDatabase: RelationalStore {}

/// What stands in the database is not what we write there.
struct StoreDamage: Error {
    let what: String

    init(_ what: String) { self.what = what }
}

extension StoreError {
    /// The error as our own kind; cancellation and errors of callers' closures pass unchanged.
    static func translated(_ error: any Error, path: String) -> any Error {
        if let value = UnreadableValue(error) { return StoreError.corrupt(path: path, reason: "\(value)") }
        if let damage = error as? StoreDamage { return StoreError.corrupt(path: path, reason: damage.what) }
        guard let error = error as? PostgresError else { return error }
        switch error.kind {
        case .diskFull: return StoreError.diskFull(path: path)
        // A server that takes over for another one is read-only for a while.
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
