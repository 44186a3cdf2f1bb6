/// The clock of an ``EventLoop``: nanoseconds of a monotonic clock, less the time in which the loop could not read.
///
/// A process may be stopped at any point and for any time: SIGSTOP, a frozen container, a suspended virtual machine,
/// swapping. A deadline that counted such a pause would pass while the answer lies in the socket. This clock therefore
/// does not count a pause, and stands still for ``standstill`` behind it, so that the loop reads what came meanwhile.
struct LoopClock {
    /// The longest wait of a loop that has timers: a longer step is a pause.
    static let waitMax: UInt64 = 500_000_000
    /// A longer step between two readings is a pause, and counts as this much.
    static let stepMax: UInt64 = 1_000_000_000
    /// Time behind a pause that does not count: room for full buffers on both sides to empty.
    static let standstill: UInt64 = 2_000_000_000

    private(set) var now: UInt64
    private var reading: UInt64
    private var standstillLeft: UInt64 = 0
    /// Time behind the last pause, the standstill included. A loop whose every round is slow must get on as well.
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

    /// Counts the whole step: the loop waited without a timer, so no deadline was pending.
    mutating func rest(until moment: UInt64) {
        now += moment > reading ? moment - reading : 0
        reading = moment
    }
}
