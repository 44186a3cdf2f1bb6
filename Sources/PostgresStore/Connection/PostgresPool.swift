package import Model
import Synchronization

/// A pool of connections for writes and of connections for reads, each on its own thread.
///
/// Writes queue for the writing connections. A write that has begun is finished even when its task is cancelled.
/// Reads run in parallel. At cancellation they stop, also on the server. A closure is run again if its transaction
/// loses a race against another one. Errors are ``PostgresError``, `CancellationError`, and those of the closures.
package final class PostgresPool: Sendable {
    let hosts: PostgresHosts
    /// The clock that its transactions use.
    let time: StoreTime
    private let writing: PostgresQueue
    private let reading: PostgresQueue

    /// Creates the pool. The first call opens a connection.
    package convenience init(
        _ address: PostgresAddress, writers: Int = 1, readers: Int = PostgresLimits.readersMax,
        time: StoreTime = .caller
    ) {
        self.init(PostgresHosts(address), writers: writers, readers: readers, time: time)
    }

    /// Creates a pool with other connections to the same store.
    ///
    /// - Parameter yields: whether its idle connections may be closed when the server accepts no others.
    convenience init(beside pool: PostgresPool, writers: Int, readers: Int, yields: Bool = true) {
        self.init(pool.hosts, writers: writers, readers: readers, time: pool.time, yields: yields)
    }

    private init(_ hosts: PostgresHosts, writers: Int, readers: Int, time: StoreTime, yields: Bool = true) {
        self.hosts = hosts
        self.time = time
        writing = PostgresQueue(hosts, time, connections: writers)
        reading = PostgresQueue(hosts, time, connections: readers)
        if yields { for queue in [writing, reading] { hosts.register(queue) } }
    }

    package var address: PostgresAddress { hosts.address }

    deinit {
        writing.close()
        reading.close()
    }

    @discardableResult
    package func write<Value: Sendable>(
        _ options: PostgresTransaction = .durable, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await writing.run(limit: options.limit, isCancellable: false) { connection, call in
            try connection.transaction(options, call, body)
        }
    }

    /// Runs `body` on one snapshot that is read-only.
    package func read<Value: Sendable>(
        _ options: PostgresTransaction = .reading, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await reading.run(limit: options.limit, isCancellable: true) { connection, call in
            try connection.transaction(options, call, body)
        }
    }

    /// Runs `body` on a writing connection, outside a transaction, for work that spans transactions. The closure may be
    /// run again.
    package func session<Value: Sendable>(
        limit: Duration = PostgresLimits.callTime, _ body: @escaping @Sendable (PostgresSession) throws -> Value
    ) async throws -> Value {
        try await writing.run(limit: limit, isCancellable: true) { connection, call in
            try connection.bare(call, body)
        }
    }

    /// Ends the current calls, but does not wait for them. Later calls throw ``PostgresError/closed(server:)``.
    package func shutDown() {
        writing.close()
        reading.close()
    }

    /// Ends the current calls, and waits until all threads have ended.
    package func close() async {
        shutDown()
        await writing.ended()
        await reading.ended()
    }
}

/// A job for one of several connections.
final class PostgresJob: Sendable {
    /// Runs the job on a connection, or ends it with an error. Returns `false` if the connection could not be opened
    /// and the job is to wait for another one.
    typealias Body = @Sendable (Result<PostgresConnection, any Error>) -> Bool

    private enum State {
        case waiting(Body)
        case running(PostgresConnection)
        case over
    }

    private struct Facts {
        var state: State?
        var isCancelled = false
    }

    private let facts = Mutex(Facts())

    var isCancelled: Bool { facts.withLock { $0.isCancelled } }

    /// Returns `false` if the job is already cancelled and must not be queued.
    func prepare(_ body: @escaping Body) -> Bool {
        facts.withLock { facts in
            guard !facts.isCancelled else { return false }
            facts.state = .waiting(body)
            return true
        }
    }

    /// Returns `false` if the job still waits, for another connection.
    func run(on connection: PostgresConnection) -> Bool {
        let body = facts.withLock { facts -> Body? in
            guard case .waiting(let body) = facts.state else { return nil }
            facts.state = .running(connection)
            return body
        }
        guard let body else { return true }
        let isDone = body(.success(connection))
        let isCancelled = facts.withLock { facts in
            let waits = !isDone && !facts.isCancelled
            facts.state = waits ? .waiting(body) : .over
            return facts.isCancelled
        }
        guard !isDone else { return true }
        if isCancelled { _ = body(.failure(CancellationError())) }
        return isCancelled
    }

    /// Ends a waiting job. If the job is running, wakes its connection, which then checks for cancellation.
    func cancel(_ error: any Error = CancellationError()) {
        let (body, connection) = facts.withLock { facts in
            facts.isCancelled = true
            switch facts.state {
            case .waiting(let body):
                facts.state = .over
                return (Optional(body), PostgresConnection?.none)
            case .running(let connection): return (nil, connection)
            case .over, nil: return (nil, nil)
            }
        }
        _ = body?(.failure(error))
        connection?.signal()
    }
}

/// A queue of jobs for several connections. The open connection that became idle last gets the next job.
///
/// One more connection may be refused while others are open, for example because a password was just changed, or
/// because the server has no connection left. Its job then waits for one of the open connections. If no connection of
/// the queue is open, another queue of the process gives up an idle one, so that the next try succeeds.
final class PostgresQueue: Sendable {
    private struct State {
        var jobs: [PostgresJob] = []
        var idle: [PostgresConnection] = []
        var isClosed = false
    }

    private let hosts: PostgresHosts
    private let connections: [PostgresConnection]
    private let state = Mutex(State())

    init(_ hosts: PostgresHosts, _ time: StoreTime, connections: Int) {
        self.hosts = hosts
        self.connections = (0..<connections).map { _ in PostgresConnection(hosts, time) }
        for connection in self.connections { connection.start(self) }
    }

    private var closed: PostgresError { .closed(server: hosts.address.description) }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Runs `body` on the thread of a connection. A job that is not cancellable also runs in a cancelled task, so
    /// that APNs' responses are recorded while a sender stops.
    func run<Value: Sendable>(
        limit: Duration, isCancellable: Bool,
        _ body: @escaping @Sendable (PostgresConnection, PostgresCall) throws -> Value
    ) async throws -> Value {
        let job = PostgresJob()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isPrepared = job.prepare { [self] connection in
                    let call = PostgresCall(limit: limit) { [self] in
                        isClosed ? .closing : isCancellable && job.isCancelled ? .cancelled : nil
                    }
                    let result = Result { try body(try connection.get(), call) }
                    if case .success(let connection) = connection, case .failure(let error as PostgresError) = result,
                        error.isRefusedOpening
                    {
                        if hasOpen(apartFrom: connection) {
                            hosts.noteRefused(error)
                            return false
                        }
                        if error.kind == .outOfConnections { hosts.makeRoom(for: self) }
                    }
                    continuation.resume(with: result)
                    return true
                }
                if isPrepared { add(job) } else { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            if isCancellable { job.cancel() }
        }
    }

    private func hasOpen(apartFrom connection: PostgresConnection) -> Bool {
        connections.contains { $0 !== connection && $0.isOpen }
    }

    /// Queues a job, at the front if it has waited already.
    func add(_ job: PostgresJob, isFirst: Bool = false) {
        let (isClosed, connection) = state.withLock { state in
            guard !state.isClosed else { return (true, PostgresConnection?.none) }
            state.jobs.insert(job, at: isFirst ? 0 : state.jobs.count)
            guard let index = state.idle.lastIndex(where: \.isOpen) ?? state.idle.indices.last else {
                return (false, nil)
            }
            return (false, state.idle.remove(at: index))
        }
        if isClosed { job.cancel(closed) }
        connection?.signal()
    }

    /// Closes the connection that has been idle longest. Returns `false` if there is none.
    func giveUpIdle() -> Bool {
        let connection = state.withLock { state in
            state.idle.firstIndex(where: \.isOpen).map { state.idle.remove(at: $0) }
        }
        connection?.closeIdle()
        return connection != nil
    }

    private enum Next {
        case job(PostgresJob)
        case none
        /// There are jobs, and they wait for another connection.
        case left
        case closed
    }

    /// Waits for the next job on a connection's thread. Returns `nil` once the queue is closed. A connection that was
    /// refused tries again after its back-off, because the job of an open connection may take long.
    func next(for connection: PostgresConnection) -> PostgresJob? {
        while true {
            let leavesJobs = connection.wasJustRefused && hasOpen(apartFrom: connection)
            let next = state.withLock { state -> Next in
                state.idle.removeAll { $0 === connection }
                if state.isClosed { return .closed }
                if !state.jobs.isEmpty, !leavesJobs { return .job(state.jobs.removeFirst()) }
                state.idle.append(connection)
                return state.jobs.isEmpty ? .none : .left
            }
            switch next {
            case .job(let job): return job
            case .closed: return nil
            case .none: connection.idle()
            case .left: connection.idle(isWaitingToRetry: true)
            }
        }
    }

    func close() {
        let jobs = state.withLock { state in
            defer { state.jobs = [] }
            state.isClosed = true
            return state.jobs
        }
        for job in jobs { job.cancel(closed) }
        for connection in connections { connection.signal() }
    }

    func ended() async {
        for connection in connections { await connection.close() }
    }
}
