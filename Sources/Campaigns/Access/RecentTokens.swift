import Model
import Synchronization

/// A cache of access tokens and sessions that were recently valid. The cache saves one token look-up per request for
/// a backend that registers thousands of devices. A revocation takes effect within one second.
///
/// While the store is unreachable, cached tokens and sessions stay valid for 12 hours. A person who was signed in
/// during that time can then still stop a run.
package final class RecentTokens: Sendable {
    private static let rememberedFor: Duration = .seconds(1)
    private static let rememberedWithoutStore: Duration = .seconds(12 * 3600)
    /// The maximum number of cached tokens, and of cached sessions. A full cache is emptied and fills again.
    private static let countMax = 1_000

    private struct Seen<Value> {
        var value: Value
        var at: Timestamp

        /// Returns the value; `nil` if it is older than `limit`, or if the wall clock was set back to a time before
        /// the value was seen. In the latter case, the value could otherwise stay valid for longer than `limit`.
        func good(now: Timestamp, within limit: Duration) -> Value? {
            (.zero..<limit).contains(now - at) ? value : nil
        }
    }

    private struct State {
        var tokens: [String: Seen<AccessToken>] = [:]
        var sessions: [String: Seen<WebSession>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    func token(secretHash: String, now: Timestamp) -> AccessToken? {
        state.withLock { $0.tokens[secretHash]?.good(now: now, within: Self.rememberedFor) }
    }

    /// Returns the cached token if it is at most 12 hours old, for use while the store is unreachable.
    func tokenWithoutStore(secretHash: String, now: Timestamp) -> AccessToken? {
        state.withLock { $0.tokens[secretHash]?.good(now: now, within: Self.rememberedWithoutStore) }
    }

    /// Returns the cached session if it is at most 12 hours old, for use while the store is unreachable.
    func sessionWithoutStore(secretHash: String, now: Timestamp) -> WebSession? {
        state.withLock { $0.sessions[secretHash]?.good(now: now, within: Self.rememberedWithoutStore) }
    }

    func remember(_ token: AccessToken, secretHash: String, now: Timestamp) {
        state.withLock { state in
            if state.tokens.count >= Self.countMax { state.tokens.removeAll() }
            state.tokens[secretHash] = Seen(value: token, at: now)
        }
    }

    func remember(_ session: WebSession, secretHash: String, now: Timestamp) {
        state.withLock { state in
            if state.sessions.count >= Self.countMax { state.sessions.removeAll() }
            state.sessions[secretHash] = Seen(value: session, at: now)
        }
    }

    /// Removes a token or a session that is no longer valid.
    func forget(secretHash: String) {
        state.withLock { state in
            state.tokens[secretHash] = nil
            state.sessions[secretHash] = nil
        }
    }

    func forgetAll() { state.withLock { $0 = State() } }
}
