import Platform

/// Notices that the process stood still, for example because it was stopped or its virtual machine was paused.
///
/// The permission to send requests may be over after that, and gathered frames cannot be taken back. A peer that reads
/// slowly is no standstill: each look shows that the process ran.
struct StandstillWatch {
    /// The nanoseconds between two looks that count as a standstill.
    private let max: UInt64
    /// The time of the latest look.
    private var ranAt: (time: UInt64, cycles: UInt64) = (0, 0)

    init(maxNanoseconds: UInt64) { max = maxNanoseconds }

    /// The milliseconds between two looks.
    var lookEveryMs: Int { Int(max / 5_000_000) }

    mutating func start() { ranAt = (BootClock.now(), CycleCounter.now()) }

    /// Looks again. Returns whether the process stood still since the latest look.
    ///
    /// The processor's counter shows the pause of a virtual machine, whose clock stands still. It counts at most 6
    /// cycles per nanosecond.
    mutating func hasPassed() -> Bool {
        let earlier = ranAt
        start()
        return ranAt.time > earlier.time &+ max || ranAt.cycles > earlier.cycles &+ 6 * max
    }
}
