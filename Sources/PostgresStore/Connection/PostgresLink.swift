import CPostgres
import Foundation
import Platform

/// Owns one libpq connection. It sends, waits and receives, and every wait can be interrupted.
///
/// Only one thread may use it. A lost connection stays lost. Every later use throws the error with which it was
/// lost.
final class PostgresLink {
    let handle: OpaquePointer
    /// The address without its password.
    let server: String
    /// The limits of the current call.
    var call: PostgresCall
    /// Whether the server may carry out what was sent although no response comes: a COMMIT, or a statement outside a
    /// transaction.
    var mayKeep = false
    /// Whether the server executes a COMMIT. It is never told to stop one: a COMMIT that waits for the disk of a
    /// synchronous standby would then succeed without it, and the standby may lack the transaction when it takes over.
    var isCommitting = false
    private let wake: EventFD
    private(set) var failure: (any Error)?

    init(_ handle: OpaquePointer, server: String, wake: EventFD, call: PostgresCall) {
        self.handle = handle
        self.server = server
        self.wake = wake
        self.call = call
        PQsetnonblocking(handle, 1)
    }

    deinit { PQfinish(handle) }

    var socket: Int32 { PQsocket(handle) }

    /// libpq's latest error message, in one line.
    var trouble: String { MessageText(PQerrorMessage(handle).map { String(cString: $0) } ?? "").line }

    /// Whether the server has not closed the connection. Use this only between calls.
    var isAlive: Bool {
        guard failure == nil, PQstatus(handle) == CONNECTION_OK else { return false }
        var socket = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        guard poll(&socket, 1, 0) > 0 else { return true }
        return PQconsumeInput(handle) == 1 && PQstatus(handle) == CONNECTION_OK
    }

    /// Throws if the connection is lost or the call is interrupted, before anything is sent. An interruption does
    /// not change the connection.
    func prepareToSend() throws {
        if let failure { throw failure }
        if let interruption = call.interruption { throw error(for: interruption) }
    }

    /// Checks the result of a libpq function that sends; 1 is success.
    func sent(_ code: Int32) throws {
        guard code == 1 else { throw PQstatus(handle) == CONNECTION_OK ? failed(trouble) : lost(trouble) }
    }

    /// Waits until all data is sent. Reads in the meantime, because the server may accept no more data until its
    /// responses are read.
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

    /// Returns the next result of the current statements, or `nil` at the end.
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
                if !isCommitting { stopServer() }
                throw end(with: error(for: interruption))
            }
            if waits(for: events) { return }
        }
    }

    /// Waits once for the server. Returns `false` if the wait ended for another reason.
    func waits(for events: Int32, until deadline: ContinuousClock.Instant? = nil) -> Bool {
        wake.wait(
            for: events, on: PQsocket(handle), milliseconds: call.remainingMilliseconds(until: deadline))
    }

    /// Marks the connection as lost because of the network or the server, and returns the error.
    func lost(_ reason: String) -> any Error {
        let reason = reason.isEmpty ? "the server closed the connection" : reason
        return end(
            with: mayKeep
                ? PostgresError.outcomeUnknown(server: server, reason: reason)
                : PostgresError.connectionLost(server: server, reason: reason))
    }

    /// Marks the connection as lost for a reason other than the network, and returns the error.
    func failed(_ reason: String) -> any Error {
        end(with: PostgresError.failed(server: server, reason: reason))
    }

    /// Gives up the current response: tells the server to stop the statement, and marks the connection as lost.
    func abandon() {
        guard failure == nil else { return }
        stopServer()
        _ = lost("it was closed during a response")
    }

    private func end(with error: any Error) -> any Error {
        failure = failure ?? error
        return error
    }

    private func error(for interruption: PostgresCall.Interruption) -> any Error {
        mayKeep
            ? PostgresError.outcomeUnknown(server: server, reason: "no response in time")
            : call.error(for: interruption, server)
    }

    /// Tells the server to stop the statement. Uses a separate thread, because the request opens a new connection,
    /// which may hang.
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
