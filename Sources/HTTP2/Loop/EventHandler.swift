import CNGHTTP2
import Glibc

/// What a descriptor is ready for.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    package static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// The peer is gone or the socket is in error: reading tells which.
    package static let broken = Readiness(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
}

/// The owner of a descriptor that an ``EventLoop`` watches. Every call comes on the loop's thread.
package protocol EventHandler: AnyObject {
    /// The descriptor can be read or written.
    func ready(_ readiness: Readiness)

    /// Asked for by ``EventLoop/atRoundEnd(_:)``: all events of the round have been handled.
    func roundEnded()

    /// The loop ends: close the descriptor and let go of everything; no other call follows.
    func abandon()
}

/// Takes the timers that ``EventLoop/schedule(afterMilliseconds:target:tag:)`` started, on the loop's thread.
package protocol TimerTarget: AnyObject {
    func timerFired(_ tag: Int64)
}

/// A value that is made on one thread and used on its loop's thread only.
struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// Wakes a thread out of `epoll_wait`: an eventfd to be watched for reading. Any thread may ring.
package final class Doorbell: Sendable {
    /// Negative where the process has no file descriptor left.
    package let file: Int32

    package init() {
        file = fanfare_eventfd_create()
    }

    deinit {
        if file >= 0 { close(file) }
    }

    package func ring() {
        var one: UInt64 = 1
        // Fails only when it rings already, or there is no bell.
        _ = write(file, &one, MemoryLayout<UInt64>.size)
    }

    package func silence() {
        var count: UInt64 = 0
        _ = read(file, &count, MemoryLayout<UInt64>.size)
    }
}
