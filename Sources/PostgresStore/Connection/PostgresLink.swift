import CPostgres
import Foundation

/// Owns one connection of libpq: sends, waits and receives, without ever blocking where it could not be interrupted.
///
/// For one thread. Once lost it stays so: every further use throws what it was lost by.
final class PostgresLink {
    let handle: OpaquePointer
    /// The address without its password.
    let server: String
    /// The bounds of what is under way.
    var call: PostgresCall
    /// Whether something that was sent and not answered may be kept by the server: a COMMIT, or a statement outside of a
    /// transaction.
    var mayKeep = false
    private let wake: WakeSignal
    private(set) var failure: (any Error)?

    init(_ handle: OpaquePointer, server: String, wake: WakeSignal, call: PostgresCall) {
        self.handle = handle
        self.server = server
        self.wake = wake
        self.call = call
        PQsetnonblocking(handle, 1)
    }

    deinit { PQfinish(handle) }

    var socket: Int32 { PQsocket(handle) }

    /// What libpq says about its last trouble.
    var trouble: String { MessageText(PQerrorMessage(handle).map { String(cString: $0) } ?? "").line }

    /// To be asked while nothing is under way: whether the server is still there, as far as it said.
    var isAlive: Bool {
        guard failure == nil, PQstatus(handle) == CONNECTION_OK else { return false }
        var socket = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        guard poll(&socket, 1, 0) > 0 else { return true }
        return PQconsumeInput(handle) == 1 && PQstatus(handle) == CONNECTION_OK
    }

    /// Before anything is sent: an interrupted call ends here and leaves the connection as it is.
    func prepareToSend() throws {
        if let failure { throw failure }
        if let interruption = call.interruption { throw error(for: interruption) }
    }

    /// What one of libpq's functions that send returned; 1 is well.
    func sent(_ code: Int32) throws {
        guard code == 1 else { throw PQstatus(handle) == CONNECTION_OK ? failed(trouble) : lost(trouble) }
    }

    /// Until the server has everything; reads meanwhile, since it may wait for that before it takes more.
    func flush() throws {
        while true {
            switch PQflush(handle) {
            case 0: return
            case 1:
                try wait(for: POLLIN | POLLOUT)
                try consume()
            default: throw lost(trouble)
            }
        }
    }

    /// The next result of what was sent; nil at its end.
    func next() throws -> PostgresResult? {
        try flush()
        while PQisBusy(handle) != 0 { try awaitInput() }
        return PQgetResult(handle).map(PostgresResult.init)
    }

    func awaitInput() throws {
        try wait(for: POLLIN)
        try consume()
    }

    private func consume() throws {
        guard PQconsumeInput(handle) == 1 else { throw lost(trouble) }
    }

    private func wait(for events: Int32) throws {
        while true {
            if let interruption = call.interruption {
                stopServer()
                throw end(with: error(for: interruption))
            }
            if waits(for: events) { return }
        }
    }

    /// One turn of waiting for the server. False: something else happened, or nothing.
    func waits(for events: Int32, until deadline: ContinuousClock.Instant? = nil) -> Bool {
        wake.wait(
            for: events, on: PQsocket(handle), milliseconds: call.remainingMilliseconds(until: deadline))
    }

    /// The connection was cut.
    func lost(_ reason: String) -> any Error {
        let reason = reason.isEmpty ? "the server closed it" : reason
        return end(
            with: mayKeep
                ? PostgresError.outcomeUnknown(server: server, reason: reason)
                : PostgresError.connectionLost(server: server, reason: reason))
    }

    /// Nothing more can be said over it, for a reason that is not the network's.
    func failed(_ reason: String) -> any Error {
        end(with: PostgresError.failed(server: server, reason: reason))
    }

    /// Leaves what is under way unread: the server is told to stop it, and the connection is of no more use.
    func abandon() {
        guard failure == nil else { return }
        stopServer()
        _ = lost("it was given up in the middle of an answer")
    }

    private func end(with error: any Error) -> any Error {
        failure = failure ?? error
        return error
    }

    private func error(for interruption: PostgresCall.Interruption) -> any Error {
        switch interruption {
        case _ where mayKeep: PostgresError.outcomeUnknown(server: server, reason: "no answer within its time")
        case .cancelled: CancellationError()
        case .closing: PostgresError.closed(server: server)
        case .timedOut: PostgresError.timedOut(server: server, limit: call.limit)
        }
    }

    /// Asks the server to stop the statement, on a thread of its own: it goes over a new connection, which may hang.
    private func stopServer() {
        guard let cancel = PQgetCancel(handle) else { return }
        let heard = DispatchSemaphore(value: 0)
        let address = UInt(bitPattern: cancel)
        Thread {
            if let cancel = OpaquePointer(bitPattern: address) { _ = fanfare_pq_cancel(cancel) }
            heard.signal()
        }.start()
        _ = heard.wait(timeout: .now() + PostgresLimits.cancelSeconds)
    }
}
