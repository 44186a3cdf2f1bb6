import Model
import Synchronization

/// Slows down callers that guess tokens. An address may send 10 wrong tokens, and one more every 6 s.
final class AttemptLimiter: Sendable {
    private static let attemptsMax = 10.0
    private static let secondsPerAttempt = 6.0
    /// The maximum number of addresses kept. Beyond it, the limiter forgets the address with the oldest attempt.
    private static let addressesMax = 10_000

    private struct Bucket {
        var used: Double
        var at: Duration
    }

    private let buckets = Mutex<[String: Bucket]>([:])
    private let uptime: @Sendable () -> Duration

    init(_ uptime: @escaping @Sendable () -> Duration) {
        self.uptime = uptime
    }

    /// Throws if this address has sent too many wrong tokens.
    func check(_ address: String) throws {
        let now = uptime()
        let used = buckets.withLock { $0[address].map { Self.left(of: $0, now) } ?? 0 }
        guard used > Self.attemptsMax - 1 else { return }
        let wait = Int(((used - Self.attemptsMax + 1) * Self.secondsPerAttempt).rounded(.up))
        throw Problem(
            429, "too_many_attempts", "Too many attempts",
            "too many wrong tokens from this address; wait \(wait) s, and create a new token with `fanfare tokens "
                + "create`",
            retryAfter: wait)
    }

    func failed(_ address: String) {
        let now = uptime()
        buckets.withLock { buckets in
            if buckets.count >= Self.addressesMax, let oldest = buckets.min(by: { $0.value.at < $1.value.at }) {
                buckets[oldest.key] = nil
            }
            let used = buckets[address].map { Self.left(of: $0, now) } ?? 0
            buckets[address] = Bucket(used: used + 1, at: now)
        }
    }

    private static func left(of bucket: Bucket, _ now: Duration) -> Double {
        max(0, bucket.used - (now - bucket.at).inSeconds / secondsPerAttempt)
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
