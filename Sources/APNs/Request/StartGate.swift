import CKernel
import Glibc
package import Platform
import Synchronization

/// Decides whether the requests of a run may start. Each confirmation that the run may continue opens the gate for a
/// limited time. After that time no request starts, even if the process was suspended. Any thread may check the gate.
package final class StartGate: Sendable {
    package enum Answer: Hashable, Sendable {
        case open
        /// The gate was not opened recently.
        case lapsed
        /// Closed permanently. Pushes that were not started are completed as `notSent`.
        case closed
    }

    /// The time until which the gate is open, by ``BootClock``. 0 if closed permanently.
    private let openUntil: Atomic<UInt64>
    /// The end of the open time by the processor's counter. The counter continues while a virtual machine is paused and
    /// its clocks stand still.
    private let cyclesUntil = Atomic<UInt64>(.max)
    /// The number of recalls of pushes that were not started.
    private let recalls = Atomic<UInt64>(0)

    /// - Parameter moment: the end of the time during which the gate is open, by ``BootClock``.
    package init(openUntil moment: UInt64) { openUntil = Atomic(max(1, moment)) }

    /// Opens the gate for this many nanoseconds, counted from a moment by both clocks. Does nothing if it is closed.
    package func open(for time: UInt64, from moment: BootMoment) {
        cyclesUntil.store(moment.cycles(after: time), ordering: .releasing)
        open(until: moment.nanoseconds + time)
    }

    /// Extends the time during which the gate is open. Does nothing if it is closed.
    package func open(until moment: UInt64) {
        var current = openUntil.load(ordering: .relaxed)
        while current != 0, current < moment {
            let (isDone, found) = openUntil.weakCompareExchange(
                expected: current, desired: moment, ordering: .releasing)
            if isDone { return }
            current = found
        }
    }

    /// Ends the open time. Pushes that were not started wait until the gate is opened again.
    package func lapse() {
        var current = openUntil.load(ordering: .relaxed)
        while current > 1 {
            let (isDone, found) = openUntil.weakCompareExchange(expected: current, desired: 1, ordering: .releasing)
            if isDone { return }
            current = found
        }
    }

    /// Recalls pushes that lanes hold and have not started. Pushes that are handed over later are not affected.
    package func recall() { recalls.wrappingAdd(1, ordering: .releasing) }

    /// The count of recalls at the time when a batch is handed to a lane, for ``isRecalled(since:)``.
    var recallCount: UInt64 { recalls.load(ordering: .relaxed) }

    func isRecalled(since count: UInt64) -> Bool { recalls.load(ordering: .relaxed) != count }

    package func close() { openUntil.store(0, ordering: .releasing) }

    /// Returns the gate's state. The gate is open only by both clocks. After a pause that ``BootClock`` did not count,
    /// the gate has lapsed until it is opened again.
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
