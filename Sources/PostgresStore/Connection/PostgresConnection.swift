import CKernel
import Foundation
import Model
import Synchronization

/// A thread of its own with one connection, outside of the threads that tasks share. It takes jobs from a queue, opens
/// the connection for the first, and anew once it was lost.
///
/// Sessions never leave the thread.
final class PostgresConnection: @unchecked Sendable {
    private let address: PostgresAddress
    private let time: StoreTime
    private let wake = WakeSignal()
    private let ended = Mutex<[CheckedContinuation<Void, Never>]?>([])
    // The thread's alone.
    private var session: PostgresSession?
    private var reconnect = ReconnectBackoff()
    private var lastFailure: (any Error)?
    private var usesNames: Bool

    init(_ address: PostgresAddress, _ time: StoreTime) {
        self.address = address
        self.time = time
        usesNames = address.usesNamedStatements
    }

    func signal() { wake.signal() }

    func start(_ queue: PostgresQueue) {
        Thread {
            fanfare_begin_thread("postgres")
            while let job = queue.next(for: self) { job.run(on: self) }
            self.session = nil
            let waiting = self.ended.withLock { ended in
                defer { ended = nil }
                return ended
            }
            for continuation in waiting ?? [] { continuation.resume() }
        }
        .start()
    }

    /// Returns when the thread is over.
    func end() async {
        await withCheckedContinuation { continuation in
            let isOver = ended.withLock { ended in
                ended?.append(continuation)
                return ended == nil
            }
            if isOver { continuation.resume() }
        }
    }

    /// For the queue, while there is no job: until the signal, or until the server says something, which is that it goes.
    func idle() {
        let socket = session.map(\.link.socket) ?? -1
        guard wake.wait(for: POLLIN, on: socket, milliseconds: -1) else { return }
        if session?.link.isAlive != true { session = nil }
    }

    /// On the thread: `body` in a transaction. Run again where it lost a race, and where its COMMIT never arrived, so it must
    /// not count on being run once.
    func transaction<Value>(
        _ options: PostgresTransaction, _ call: PostgresCall, _ body: (PostgresSession) throws -> Value
    ) throws -> Value {
        var losses = 0
        while true {
            let session = try begun(options, call)
            do {
                switch try session.finish({ try body(session) }) {
                case .committed(let value): return value
                // Nothing of it could be lost.
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
                // Others are to finish first: a moment longer each time, not the same for two.
                usleep(UInt32.random(in: 1_000...(10_000 << UInt32(losses))))
            }
        }
    }

    /// Asks the server what became of a COMMIT that it did not answer, until it is over or there is no time left.
    private func ending(of mark: CommitMark?, _ call: PostgresCall) -> CommitMark.Ending {
        guard let mark else { return .forgotten }
        let asking = call.extended(by: .seconds(PostgresLimits.unheardSeconds))
        while asking.interruption == nil {
            // What fails here has said nothing of the transaction.
            let ending = (try? mark.ending(try opened(asking))) ?? .underWay
            guard ending == .underWay else { return ending }
            usleep(5_000)
        }
        return .underWay
    }

    /// On the thread: the bare session, for what is no transaction. `body` is run again where a pooler has lost our prepared
    /// statements.
    func bare<Value>(_ call: PostgresCall, _ body: (PostgresSession) throws -> Value) throws -> Value {
        do {
            return try body(try opened(call))
        } catch let error as PostgresError where error.kind == .lostStatement && usesNames {
            giveUpNames()
            return try body(try opened(call))
        }
    }

    /// With BEGIN answered. A connection that turns out to be lost before anything was said on it is opened anew, once.
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
            let link = try PostgresLink.open(address, wake: wake, call: call)
            reconnect = ReconnectBackoff()
            lastFailure = nil
            let session = PostgresSession(link, usesNames: usesNames, time: time)
            self.session = session
            return session
        } catch let error as PostgresError {
            if case .cannotConnect = error {
                lastFailure = error
                reconnect.failed(at: .now, jitter: .random(in: 0.5...1))
            }
            throw error
        }
    }

    /// A pooler does not follow our prepared statements.
    private func giveUpNames() {
        usesNames = false
        session = nil
    }
}

/// When a server that could not be reached is asked again: each time later, up to a limit.
struct ReconnectBackoff {
    private var failures = 0
    private var tryAt: ContinuousClock.Instant?

    func mayTry(at now: ContinuousClock.Instant) -> Bool { tryAt.map { now >= $0 } ?? true }

    mutating func failed(at now: ContinuousClock.Instant, jitter: Double) {
        let doubled = PostgresLimits.reconnectMilliseconds * Double(1 << min(failures, 10))
        tryAt = now + .milliseconds(min(doubled, PostgresLimits.reconnectMillisecondsMax) * jitter)
        failures += 1
    }
}
