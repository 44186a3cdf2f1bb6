import Model
import Synchronization

/// A cache of access tokens and sessions that were valid a moment ago. It spares a backend that registers thousands of
/// devices one token look-up per request. A revocation takes effect within one second.
///
/// While the store is unreachable, cached tokens and sessions stay valid for 12 hours. A person who was let in that day
/// can then still stop what is being sent.
package final class RecentTokens: Sendable {
    private static let rememberedFor: Duration = .seconds(1)
    private static let rememberedWithoutStore: Duration = .seconds(12 * 3600)
    /// The maximum number of tokens, and of sessions. A full table is emptied, and its entries are looked up again.
    private static let countMax = 1_000

    private struct Seen<Value> {
        var value: Value
        var at: Timestamp

        /// Returns `nil` if the value is older than `limit`, or if the wall clock now reads earlier than when the value
        /// was seen. The clock will reach that moment again, which would extend the limit.
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

    /// Returns the cached token while the store is unreachable.
    func tokenWithoutStore(secretHash: String, now: Timestamp) -> AccessToken? {
        state.withLock { $0.tokens[secretHash]?.good(now: now, within: Self.rememberedWithoutStore) }
    }

    /// Returns the cached session while the store is unreachable.
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
