import Foundation
import Platform

/// The time limit of one call, and a check for reasons to end it earlier.
struct PostgresCall: Sendable {
    enum Interruption: Hashable, Sendable {
        case cancelled
        case timedOut
        case closing
    }

    let limit: Duration
    let deadline: ContinuousClock.Instant
    private let isStopped: @Sendable () -> Interruption?

    init(limit: Duration, isStopped: @escaping @Sendable () -> Interruption? = { nil }) {
        self.limit = limit
        deadline = .now + limit
        self.isStopped = isStopped
    }

    /// Returns the same call with a new limit from now on, to find the outcome after the call's own time has passed.
    func extended(by limit: Duration) -> PostgresCall { PostgresCall(limit: limit, isStopped: isStopped) }

    /// Returns the same call, limited to `limit` from now.
    func atMost(_ limit: Duration) -> PostgresCall {
        let rest = ContinuousClock.now.duration(to: deadline)
        return PostgresCall(limit: min(rest, limit), isStopped: isStopped)
    }

    var interruption: Interruption? { isStopped() ?? (ContinuousClock.now < deadline ? nil : .timedOut) }

    /// Returns the error of a call that was interrupted before the server could keep anything of it.
    func error(for interruption: Interruption, _ server: String) -> any Error {
        switch interruption {
        case .cancelled: CancellationError()
        case .closing: PostgresError.closed(server: server)
        case .timedOut: PostgresError.timedOut(server: server, limit: limit)
        }
    }

    /// Returns the longest time that `poll` may wait: until the call's deadline or `other`, whichever is earlier.
    func remainingMilliseconds(until other: ContinuousClock.Instant? = nil) -> Int32 {
        let end = min(deadline, other ?? deadline)
        let rest = ContinuousClock.now.duration(to: end)
        let milliseconds = rest.components.seconds * 1000 + rest.components.attoseconds / 1_000_000_000_000_000
        return Int32(clamping: max(0, milliseconds) + 1)
    }
}

extension EventFD {
    /// The longest wait if the system provides no eventfd. The waiting thread then wakes up without a signal.
    private static let waitMilliseconds: Int32 = 100

    /// Waits for an event on `socket`, the signal, or the end of the time. Returns `true` for an event on the
    /// socket. A negative `socket` means that there is none.
    func wait(for events: Int32, on socket: Int32, milliseconds: Int32) -> Bool {
        var files = [
            pollfd(fd: socket, events: Int16(events), revents: 0),
            pollfd(fd: file, events: Int16(POLLIN), revents: 0),
        ]
        let longest = file < 0 ? Self.waitMilliseconds : Int32.max
        guard poll(&files, 2, milliseconds < 0 ? min(-1, longest) : min(milliseconds, longest)) > 0 else {
            return false
        }
        if files[1].revents != 0 { clear() }
        return files[0].revents != 0
    }
}
