/// The clock of an ``EventLoop``: nanoseconds of a monotonic clock, minus the time in which the loop could not read.
///
/// A process may be stopped at any point and for any time: SIGSTOP, a frozen container, a suspended virtual machine,
/// swapping. A deadline that counted such a pause would pass while the response is in the socket. This clock therefore
/// does not count a pause. It also stands still for a while afterwards (``standstill``), so that the loop can read
/// arrived data.
struct LoopClock {
    /// The maximum wait of a loop with timers. It is shorter than ``stepMax``, so that a wait never counts as a pause.
    static let waitMax: UInt64 = 500_000_000
    /// The maximum counted step between two readings. A longer step is a pause, whose excess is never counted.
    static let stepMax: UInt64 = 1_000_000_000
    /// The uncounted time from a pause on, including ``stepMax`` of the pause itself. It is enough to empty full
    /// buffers on both sides.
    static let standstill: UInt64 = 2_000_000_000

    private(set) var now: UInt64
    private var reading: UInt64
    private var standstillLeft: UInt64 = 0
    /// The counted and uncounted time since the last standstill began. Standstills are limited to half of the time, so
    /// that the clock of a permanently slow loop still advances.
    private var sincePause = 2 * standstill

    /// - Parameter reading: nanoseconds of the monotonic clock.
    init(at reading: UInt64) {
        now = reading
        self.reading = reading
    }

    mutating func advance(to moment: UInt64) {
        let step = moment > reading ? moment - reading : 0
        reading = moment
        let counted = min(step, Self.stepMax)
        if step > Self.stepMax, sincePause >= 2 * Self.standstill {
            standstillLeft = Self.standstill
            sincePause = 0
        }
        sincePause += counted
        let lost = min(counted, standstillLeft)
        standstillLeft -= lost
        now += counted - lost
    }

    /// Counts the whole step, because the loop waited without a timer, and so without a deadline.
    mutating func rest(until moment: UInt64) {
        now += moment > reading ? moment - reading : 0
        reading = moment
    }
}
