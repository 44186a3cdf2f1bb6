import CKernel
import Glibc

/// An eventfd that wakes a thread out of `epoll_wait` or `poll`. Watch it for reading. Any thread may signal.
package final class EventFD: Sendable {
    /// The file descriptor. Negative if the process could not open one.
    package let file: Int32

    package init() {
        file = fanfare_eventfd_create()
    }

    deinit {
        if file >= 0 { close(file) }
    }

    package func signal() {
        var one: UInt64 = 1
        // The write fails only if the counter is full, so that the signal is set, or if there is no eventfd.
        _ = write(file, &one, MemoryLayout<UInt64>.size)
    }

    package func clear() {
        var count: UInt64 = 0
        _ = read(file, &count, MemoryLayout<UInt64>.size)
    }
}
