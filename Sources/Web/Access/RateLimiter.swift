import Model
import Synchronization

/// Limits how often each caller may do something: a number of times at once, and one more at each interval.
final class RateLimiter: Sendable {
    /// The maximum number of callers of a generation.
    private static let callersMax = 10_000

    private struct Bucket {
        var used: Double
        var at: Duration
    }

    private struct State {
        var recent: [String: Bucket] = [:]
        /// The callers of the generation before. They are forgotten when the recent generation is full, so that each
        /// call takes the same time with any number of callers.
        var older: [String: Bucket] = [:]

        subscript(caller: String) -> Bucket? { recent[caller] ?? older[caller] }
    }

    private let state = Mutex(State())
    private let atOnce: Double
    private let secondsEach: Double
    private let uptime: @Sendable () -> Duration

    init(atOnce: Int, secondsEach: Double, _ uptime: @escaping @Sendable () -> Duration) {
        self.atOnce = Double(atOnce)
        self.secondsEach = secondsEach
        self.uptime = uptime
    }

    /// Returns the seconds that a caller must wait, or `nil` if it may go on.
    func wait(_ caller: String) -> Int? {
        let now = uptime()
        let used = state.withLock { state in state[caller].map { left(of: $0, now) } ?? 0 }
        guard used > atOnce - 1 else { return nil }
        return Int(((used - atOnce + 1) * secondsEach).rounded(.up))
    }

    /// Counts one use of a caller.
    func use(_ caller: String) {
        let now = uptime()
        state.withLock { state in
            let used = state[caller].map { left(of: $0, now) } ?? 0
            if state.recent.count >= Self.callersMax { (state.older, state.recent) = (state.recent, [:]) }
            state.recent[caller] = Bucket(used: used + 1, at: now)
        }
    }

    private func left(of bucket: Bucket, _ now: Duration) -> Double {
        max(0, bucket.used - (now - bucket.at).inSeconds / secondsEach)
    }
}

/// Decides which wrong secrets are reported. The first one from an address is reported immediately, and later their
/// number, at most once a minute. All addresses together get at most 20 reports a minute, so that no caller fills the
/// log.
final class RefusalReports: Sendable {
    private static let every: Duration = .seconds(60)
    private static let reportsMax = 20
    private static let addressesMax = 1_000

    private struct State {
        var since: Duration = .zero
        var reports = 0
        var untold: [String: Int] = [:]
        var told: [String: Duration] = [:]
    }

    private let state = Mutex(State())
    private let uptime: @Sendable () -> Duration

    init(_ uptime: @escaping @Sendable () -> Duration) {
        self.uptime = uptime
    }

    /// Counts one more wrong secret. Returns the number to report now, or `nil` if no report is due.
    func count(_ address: String) -> Int? {
        let now = uptime()
        return state.withLock { state in
            if now - state.since >= Self.every { (state.since, state.reports) = (now, 0) }
            if state.untold.count >= Self.addressesMax { state.untold = [:] }
            if state.told.count >= Self.addressesMax { state.told = [:] }
            let count = state.untold[address, default: 0] + 1
            let isDue = state.told[address].map { now - $0 >= Self.every } ?? true
            guard isDue, state.reports < Self.reportsMax else {
                state.untold[address] = count
                return nil
            }
            state.reports += 1
            state.told[address] = now
            state.untold[address] = nil
            return count
        }
    }
}
