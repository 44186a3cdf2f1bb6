import Glibc
import Synchronization

/// Lets the requests of a run start, or not: opened for a while at a time by whoever knows that the run is to go on, so
/// that nothing leaves when nobody could tell meanwhile, however long the process slept. Any thread may ask.
package final class StartGate: Sendable {
    package enum Answer: Hashable, Sendable {
        case open
        /// Nobody has opened it lately.
        case lapsed
        /// For good: what is not started comes back.
        case closed
    }

    /// By ``BootClock``; 0: closed for good.
    private let openUntil: Atomic<UInt64>

    /// - Parameter moment: until when it is open, by ``BootClock``.
    package init(openUntil moment: UInt64) { openUntil = Atomic(max(1, moment)) }

    /// Does nothing once it is closed.
    package func open(until moment: UInt64) {
        var current = openUntil.load(ordering: .relaxed)
        while current != 0, current < moment {
            let (isDone, found) = openUntil.weakCompareExchange(
                expected: current, desired: moment, ordering: .releasing)
            if isDone { return }
            current = found
        }
    }

    /// What is not started waits until it is opened again.
    package func lapse() {
        var current = openUntil.load(ordering: .relaxed)
        while current > 1 {
            let (isDone, found) = openUntil.weakCompareExchange(expected: current, desired: 1, ordering: .releasing)
            if isDone { return }
            current = found
        }
    }

    package func close() { openUntil.store(0, ordering: .releasing) }

    func answer(at now: UInt64) -> Answer {
        let until = openUntil.load(ordering: .acquiring)
        return until == 0 ? .closed : now < until ? .open : .lapsed
    }
}

/// Nanoseconds since the machine was started, those it slept included (CLOCK_BOOTTIME): nobody sets it.
package enum BootClock {
    package static let never = UInt64.max

    /// The start of the machine it counts from, as the kernel names it; empty where the system does not tell.
    package static let bootID: String = {
        let file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 36)
        return read(file, &bytes, bytes.count) == bytes.count ? String(decoding: bytes, as: UTF8.self) : ""
    }()

    package static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
