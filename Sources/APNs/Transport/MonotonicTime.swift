import Glibc

/// Nanoseconds on a clock that never jumps; only differences mean something.
struct MonotonicTime: Comparable {
    let nanoseconds: Int64

    static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    static func + (moment: MonotonicTime, duration: Duration) -> MonotonicTime {
        let parts = duration.components
        return MonotonicTime(
            nanoseconds: moment.nanoseconds + parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000)
    }

    /// Whole milliseconds until this moment, rounded up; 0 once it has passed.
    func millisecondsLeft(at now: MonotonicTime) -> Int64 {
        max(0, (nanoseconds - now.nanoseconds + 999_999) / 1_000_000)
    }
}

extension Duration {
    /// Whole milliseconds, the fraction dropped.
    var milliseconds: Int {
        Int(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
