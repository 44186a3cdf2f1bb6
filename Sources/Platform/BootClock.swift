import CKernel
import Foundation
import Synchronization

/// A moment by the machine's clock and by the processor's counter.
///
/// A hypervisor that pauses a machine deliberately stops the clock of its guest (kvm-clock), so the guest's kernel
/// clocks do not show the pause. The processor's counter (TSC) continues. If there is no counter, or if it was set back
/// as in a restored copy of a machine, the machine's clock decides alone.
package struct BootMoment: Hashable, Sendable {
    package let nanoseconds: UInt64
    package let counter: UInt64
    /// The measured number of cycles per nanosecond. 0 if not yet known.
    package let rate: Double

    package init(nanoseconds: UInt64, counter: UInt64, rate: Double) {
        self.nanoseconds = nanoseconds
        self.counter = counter
        self.rate = rate
    }

    package static func now() -> BootMoment { CycleCounter.moment() }

    /// Returns the time since an earlier moment, by the clock that shows more.
    package func time(since earlier: BootMoment) -> Duration {
        let nanoseconds = nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0
        guard counter > earlier.counter, earlier.counter > 0, rate > 0 else { return .nanoseconds(nanoseconds) }
        return .nanoseconds(max(nanoseconds, UInt64(Double(counter - earlier.counter) / rate)))
    }

    package func cycles(after time: UInt64) -> UInt64 {
        guard counter > 0, rate > 0 else { return .max }
        return counter &+ UInt64(Double(time) * rate)
    }
}

/// The processor's cycle counter, and its rate as measured with ``BootClock``.
package enum CycleCounter {
    /// Returns the counter, or 0 if the processor has none.
    package static func now() -> UInt64 { fanfare_cycles() }

    private static let pace = Mutex(CyclePace())

    /// Returns both clocks at one moment. It reads them again if the process was delayed in between.
    package static func moment() -> BootMoment {
        var (nanoseconds, counter, spread) = (UInt64(0), UInt64(0), UInt64.max)
        for _ in 0..<5 where spread > readingMax {
            let before = now()
            nanoseconds = BootClock.now()
            counter = now()
            spread = counter &- before
        }
        let isExact = spread <= readingMax
        return pace.withLock { $0.moment(nanoseconds, counter, isExact: isExact) }
    }

    /// The maximum number of cycles for an exact reading: some tenths of a millisecond.
    private static let readingMax: UInt64 = 1_000_000
}

/// Measures the counter's rate: the median of the last intervals. The median ignores an interval with a pause or a
/// sleep of the machine.
package struct CyclePace {
    /// The minimum length of an interval. Shorter intervals are imprecise.
    private static let shortest: UInt64 = 200_000_000
    private static let intervalsMax = 5

    private var since: (nanoseconds: UInt64, counter: UInt64)?
    private var rates: [Double] = []

    package init() {}

    package mutating func moment(_ nanoseconds: UInt64, _ counter: UInt64, isExact: Bool = true) -> BootMoment {
        if isExact { learn(nanoseconds, counter) }
        let rate = rates.isEmpty ? 0 : rates.sorted()[(rates.count - 1) / 2]
        return BootMoment(nanoseconds: nanoseconds, counter: counter, rate: rate)
    }

    private mutating func learn(_ nanoseconds: UInt64, _ counter: UInt64) {
        // Start a new interval at the first reading, and at a reading of another processor's counter.
        guard let known = since, counter > known.counter, nanoseconds >= known.nanoseconds else {
            since = (nanoseconds, counter)
            return
        }
        let passed = nanoseconds - known.nanoseconds
        guard passed >= Self.shortest else { return }
        rates.append(Double(counter - known.counter) / Double(passed))
        if rates.count > Self.intervalsMax { rates.removeFirst() }
        since = (nanoseconds, counter)
    }
}

/// Nanoseconds since the machine's boot, including sleep (CLOCK_BOOTTIME). The clock cannot be set.
package enum BootClock {
    package static let never = UInt64.max

    /// The kernel's id of the boot that the clock counts from. Empty if the system does not provide it.
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

/// The identity of the machine's current boot.
package enum MachineStart {
    /// The boot identifier and the time namespace, because a container may have an uptime of its own. Empty if the
    /// system provides no identifier.
    package static let name: String = {
        guard !BootClock.bootID.isEmpty else { return "" }
        let space = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/time")) ?? ""
        return BootClock.bootID + space.filter(\.isNumber)
    }()
}
