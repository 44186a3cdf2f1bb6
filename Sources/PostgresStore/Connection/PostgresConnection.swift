import CKernel
import Foundation
import Model
import Platform
import Synchronization

/// A thread with one connection, separate from the threads that tasks share. It takes jobs from a queue. It opens
/// the connection for the first job, and opens it again after the connection is lost.
///
/// Sessions never leave the thread.
final class PostgresConnection: @unchecked Sendable {
    private let hosts: PostgresHosts
    private let time: StoreTime
    private let wake = EventFD()
    private let ended = Mutex<[CheckedContinuation<Void, Never>]?>([])
    private let openness = Mutex(false)
    private let isToClose = Mutex(false)
    // Only the thread uses these.
    private var session: PostgresSession? {
        didSet { openness.withLock { $0 = session != nil } }
    }
    private var reconnect = ReconnectBackoff()
    private var lastFailure: PostgresError?
    private var usesNames: Bool

    init(_ hosts: PostgresHosts, _ time: StoreTime) {
        self.hosts = hosts
        self.time = time
        usesNames = hosts.address.usesNamedStatements
    }

    var isOpen: Bool { openness.withLock { $0 } }

    /// Whether the server refused this connection, and it is too early to try again. For the thread.
    var wasJustRefused: Bool { lastFailure?.isRefusedOpening == true && !reconnect.mayTry(at: .now) }

    func signal() { wake.signal() }

    /// Closes the idle connection. Its next job opens it again.
    func closeIdle() {
        isToClose.withLock { $0 = true }
        wake.signal()
    }

    func start(_ queue: PostgresQueue) {
        Thread {
            fanfare_begin_thread("postgres")
            while let job = queue.next(for: self) {
                if !job.run(on: self) { queue.add(job, isFirst: true) }
            }
            self.session = nil
            let waiting = self.ended.withLock { ended in
                defer { ended = nil }
                return ended
            }
            for continuation in waiting ?? [] { continuation.resume() }
        }
        .start()
    }

    /// Waits until the thread has ended.
    func close() async {
        await withCheckedContinuation { continuation in
            let isOver = ended.withLock { ended in
                ended?.append(continuation)
                return ended == nil
            }
            if isOver { continuation.resume() }
        }
    }

    /// Waits while the queue has no job, until the signal, or until the server sends data. A server that sends data
    /// now is closing the connection.
    ///
    /// - Parameter isWaitingToRetry: whether to wait only until a refused connection may try again.
    func idle(isWaitingToRetry: Bool = false) {
        let socket = session.map(\.link.socket) ?? -1
        let wait: Int32 = isWaitingToRetry ? reconnect.milliseconds(from: .now) : -1
        let hasEvent = wake.wait(for: POLLIN, on: socket, milliseconds: wait)
        let closes = isToClose.withLock { isToClose in
            defer { isToClose = false }
            return isToClose
        }
        if closes { session = nil }
        guard hasEvent else { return }
        if session?.link.isAlive != true { session = nil }
    }

    /// Runs `body` in a transaction, on the thread. Runs the transaction again if it lost a race, or if it was
    /// rolled back because its COMMIT never arrived. So `body` must tolerate repetition.
    ///
    /// A server that refuses a write as read-only may have become a standby. The next call connects again, to find the
    /// primary.
    func transaction<Value>(
        _ options: PostgresTransaction, _ call: PostgresCall, _ body: (PostgresSession) throws -> Value
    ) throws -> Value {
        var losses = 0
        while true {
            do {
                let session = try begun(options, call)
                switch try session.finish({ try body(session) }) {
                case .committed(let value): return value
                // A read has nothing to lose.
                case .unheard(let value, _) where options.isReadOnly: return value
                case .unheard(let value, let error):
                    switch ending(of: session.mark, call) {
                    case .committed: return value
                    case .rolledBack where losses < PostgresLimits.retriesMax: losses += 1
                    case .rolledBack, .underWay, .forgotten: throw error
                    }
                }
            } catch let error as PostgresError where error.isLostRace && losses < PostgresLimits.retriesMax {
                losses += 1
                if error.kind == .lostStatement { giveUpNames() }
                // Let the other transactions finish first. The wait grows each time and is random, so that two
                // transactions that lost do not collide again.
                usleep(UInt32.random(in: 1_000...(10_000 << UInt32(losses))))
            } catch let error as PostgresError where error.kind == .readOnly && !options.isReadOnly {
                session = nil
                throw error
            }
        }
    }

    /// Queries the server for the outcome of a COMMIT that got no response, until there is an outcome or the time is
    /// over.
    private func ending(of mark: CommitMark?, _ call: PostgresCall) -> CommitMark.Ending {
        guard let mark else { return .forgotten }
        let asking = call.extended(by: .seconds(PostgresLimits.unheardSeconds))
        while asking.interruption == nil {
            // A failure here proves nothing about the transaction.
            let ending = (try? mark.ending(try opened(asking))) ?? .underWay
            guard ending == .underWay else { return ending }
            usleep(5_000)
        }
        return .underWay
    }

    /// Runs `body` on the bare session, on the thread, for work outside transactions. Runs `body` again if a pooler
    /// has lost the prepared statements. Leaves a server that became read-only, as a transaction does.
    func bare<Value>(_ call: PostgresCall, _ body: (PostgresSession) throws -> Value) throws -> Value {
        do {
            return try body(try opened(call))
        } catch let error as PostgresError where error.kind == .lostStatement && usesNames {
            giveUpNames()
            return try body(try opened(call))
        } catch let error as PostgresError where error.kind == .readOnly {
            session = nil
            throw error
        }
    }

    /// Returns a session on which BEGIN has succeeded. If an open connection turns out to be lost, it is reopened
    /// once.
    private func begun(_ options: PostgresTransaction, _ call: PostgresCall) throws -> PostgresSession {
        let isNew = session == nil
        do {
            let session = try opened(call)
            try session.begin(options)
            return session
        } catch let error as PostgresError where error.kind == .connectionLost && !isNew {
            let session = try opened(call)
            try session.begin(options)
            return session
        }
    }

    private func opened(_ call: PostgresCall) throws -> PostgresSession {
        if let session, session.link.isAlive {
            session.link.call = call
            return session
        }
        session = nil
        if let lastFailure, !reconnect.mayTry(at: .now) { throw lastFailure }
        do {
            let link = try opening(call)
            reconnect = ReconnectBackoff()
            lastFailure = nil
            let session = PostgresSession(link, usesNames: usesNames, time: time)
            self.session = session
            return session
        } catch let error as PostgresError {
            if case .cannotConnect = error {
                lastFailure = error
                reconnect.failed(at: .now)
            }
            throw error
        }
    }

    /// Opens the connection. A password file that cannot be read is a fault of the settings only for the first
    /// connection. Later, the file may be about to be replaced, so the fault counts as a refused login.
    private func opening(_ call: PostgresCall) throws -> PostgresLink {
        do {
            return try PostgresLink.open(hosts, wake: wake, call: call)
        } catch let error as PostgresAddressFault where hosts.hasOpened {
            let fault = ServerFault(sqlstate: ServerFault.wrongPassword, message: error.description, isFatal: true)
            throw PostgresError.cannotConnect(
                server: hosts.address.description, fault: fault, reason: error.description)
        }
    }

    /// Stops using prepared statements, because a pooler does not support them.
    private func giveUpNames() {
        usesNames = false
        session = nil
    }
}

/// Decides when to retry a server that could not be reached. The wait grows each time, up to a limit.
struct ReconnectBackoff {
    private let waits: Backoff
    private var failures = 0
    private var tryAt: ContinuousClock.Instant?

    init(_ waits: Backoff = PostgresLimits.reconnects) { self.waits = waits }

    func mayTry(at now: ContinuousClock.Instant) -> Bool { tryAt.map { now >= $0 } ?? true }

    /// Returns the time until the next try, rounded up.
    func milliseconds(from now: ContinuousClock.Instant) -> Int32 {
        guard let tryAt, now < tryAt else { return 0 }
        return Int32(clamping: Int(now.duration(to: tryAt) / .milliseconds(1)) + 1)
    }

    mutating func failed(at now: ContinuousClock.Instant) {
        failures += 1
        tryAt = now + waits.delay(afterFailures: failures)
    }
}
