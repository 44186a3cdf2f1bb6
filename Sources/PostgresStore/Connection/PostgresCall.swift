import CPostgres
import Foundation

/// How long one call may take, and who may end it before.
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

    /// The same for what is left to find out once its time is over.
    func extended(by limit: Duration) -> PostgresCall { PostgresCall(limit: limit, isStopped: isStopped) }

    /// The same, over after `limit` at the latest.
    func atMost(_ limit: Duration) -> PostgresCall {
        let rest = ContinuousClock.now.duration(to: deadline)
        return PostgresCall(limit: min(rest, limit), isStopped: isStopped)
    }

    var interruption: Interruption? { isStopped() ?? (ContinuousClock.now < deadline ? nil : .timedOut) }

    /// What `poll` is to wait at most, for the deadline of the call and another one.
    func remainingMilliseconds(until other: ContinuousClock.Instant? = nil) -> Int32 {
        let end = min(deadline, other ?? deadline)
        let rest = ContinuousClock.now.duration(to: end)
        let milliseconds = rest.components.seconds * 1000 + rest.components.attoseconds / 1_000_000_000_000_000
        return Int32(clamping: max(0, milliseconds) + 1)
    }
}

/// Wakes a thread that waits in `poll`: an eventfd of its own.
final class WakeSignal: Sendable {
    let file: Int32

    /// Without a file, where the system gives none, a waiting thread looks up each ``waitMilliseconds``.
    init() { file = fanfare_pq_wake_create() }

    deinit { if file >= 0 { close(file) } }

    func signal() { fanfare_pq_wake_signal(file) }

    func clear() { fanfare_pq_wake_clear(file) }

    /// Until something happens on `socket` (none: negative), the signal was given, or the time is over. True: the socket.
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

    private static let waitMilliseconds: Int32 = 100
}
