import CKernel
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
    /// The same by the processor's counter, which goes on while a virtual machine is paused and its clocks stand still.
    private let cyclesUntil = Atomic<UInt64>(.max)
    /// How often what was not started was called back.
    private let recalls = Atomic<UInt64>(0)

    /// - Parameter moment: until when it is open, by ``BootClock``.
    package init(openUntil moment: UInt64) { openUntil = Atomic(max(1, moment)) }

    /// Opens it for this many nanoseconds, counted from a moment by both clocks. Does nothing once it is closed.
    package func open(for time: UInt64, from moment: BootMoment) {
        cyclesUntil.store(moment.cycles(after: time), ordering: .releasing)
        open(until: moment.nanoseconds + time)
    }

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

    /// What was handed to lanes until now, and is not started, comes back. What is handed to them later starts as before.
    package func recall() { recalls.wrappingAdd(1, ordering: .releasing) }

    /// The state of a batch that is handed to a lane now, for ``isRecalled(since:)``.
    var recallCount: UInt64 { recalls.load(ordering: .relaxed) }

    func isRecalled(since count: UInt64) -> Bool { recalls.load(ordering: .relaxed) != count }

    package func close() { openUntil.store(0, ordering: .releasing) }

    /// Both clocks must say that it is open: after a pause of the machine that its own clock did not count it has lapsed, until
    /// the next answer that the store gives after the pause.
    package func answer(at now: BootMoment) -> Answer { answer(at: now.nanoseconds, cycles: now.counter) }

    func answer(at now: UInt64) -> Answer {
        answer(at: now, cycles: cyclesUntil.load(ordering: .relaxed) == .max ? 0 : CycleCounter.now())
    }

    private func answer(at now: UInt64, cycles: UInt64) -> Answer {
        let until = openUntil.load(ordering: .acquiring)
        guard until != 0 else { return .closed }
        return now < until && cycles < cyclesUntil.load(ordering: .acquiring) ? .open : .lapsed
    }
}

/// A moment by the machine's clock and by the processor's counter.
///
/// A hypervisor that pauses a machine stops the clock of its guest on purpose (kvm-clock): no clock of the guest's kernel tells
/// the pause. The processor's counter (TSC) goes on. Where there is none, or where it was set back as in a restored copy of a
/// machine, the machine's clock decides alone.
package struct BootMoment: Hashable, Sendable {
    package let nanoseconds: UInt64
    let counter: UInt64
    /// How many cycles a nanosecond has at most; 0: not known yet.
    let rate: Double

    package init(nanoseconds: UInt64, counter: UInt64, rate: Double) {
        self.nanoseconds = nanoseconds
        self.counter = counter
        self.rate = rate
    }

    package static func now() -> BootMoment { CycleCounter.moment() }

    func cycles(after time: UInt64) -> UInt64 {
        guard counter > 0, rate > 0 else { return .max }
        return counter &+ UInt64(Double(time) * rate)
    }
}

/// The processor's counter of cycles, and how fast it runs by ``BootClock``.
package enum CycleCounter {
    /// 0 where the processor has none.
    package static func now() -> UInt64 { fanfare_cycles() }

    private static let pace = Mutex(CyclePace())

    /// Both clocks at one moment, read again when the process was held up in between.
    static func moment() -> BootMoment {
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

    /// Some tenths of a millisecond.
    private static let readingMax: UInt64 = 1_000_000
}

/// Learns how fast the counter runs: the median of the last intervals, since one that holds a pause or a sleep of the machine
/// says something else.
package struct CyclePace {
    /// Shorter intervals say little.
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
        // The first reading, or another processor's counter.
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
