import Model
import Synchronization

/// Access tokens that were good a moment ago: an app's backend that registers devices by the thousand does not have its
/// token looked up for each. Who revokes one here is obeyed at once, who does so in another process within a second.
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
        guard let found = seen.withLock({ $0[secretHash] }) else { return nil }
        // The wall clock may have gone back.
        return (.zero..<Self.rememberedFor).contains(now - found.at) ? found.token : nil
    }

    func remember(_ token: AccessToken, secretHash: String, now: Timestamp) {
        seen.withLock { seen in
            if seen.count >= Self.countMax { seen.removeAll() }
            seen[secretHash] = Seen(token: token, at: now)
        }
    }

    func forgetAll() { seen.withLock { $0.removeAll() } }
}
