import Model
import Synchronization

/// Access tokens that were good a moment ago: an app's backend that registers devices by the thousand does not have its
/// token looked up for each. Who revokes one is obeyed within a second.
package final class RecentTokens: Sendable {
    private static let rememberedFor: Duration = .seconds(1)
    /// More are forgotten, and looked up.
    private static let countMax = 1_000

    private struct Seen {
        var token: AccessToken
        var at: Timestamp
    }

    private let seen = Mutex<[String: Seen]>([:])

    package init() {}

    func token(secretHash: String, now: Timestamp) -> AccessToken? {
        seen.withLock { seen in
            guard let found = seen[secretHash] else { return nil }
            if (.zero..<Self.rememberedFor).contains(now - found.at) { return found.token }
            // Also where the wall clock has gone back: it will come to that moment again.
            seen[secretHash] = nil
            return nil
        }
    }

    func remember(_ token: AccessToken, secretHash: String, now: Timestamp) {
        seen.withLock { seen in
            if seen.count >= Self.countMax { seen.removeAll() }
            seen[secretHash] = Seen(token: token, at: now)
        }
    }

    func forgetAll() { seen.withLock { $0.removeAll() } }
}
