import Model
import Synchronization

/// Access tokens and sessions that were good a moment ago: an app's backend that registers devices by the thousand does not
/// have its token looked up for each. Who revokes one is obeyed within a second.
///
/// While the store cannot be asked they are good for longer, as it cannot be asked for anything else either: whoever was let
/// in today can still stop what is being sent.
package final class RecentTokens: Sendable {
    private static let rememberedFor: Duration = .seconds(1)
    private static let rememberedWithoutStore: Duration = .seconds(12 * 3600)
    /// More are forgotten, and looked up.
    private static let countMax = 1_000

    private struct Seen<Value> {
        var value: Value
        var at: Timestamp

        /// Nil where the wall clock has gone back, too: it will come to that moment again.
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

    /// For whoever cannot ask the store.
    func tokenWithoutStore(secretHash: String, now: Timestamp) -> AccessToken? {
        state.withLock { $0.tokens[secretHash]?.good(now: now, within: Self.rememberedWithoutStore) }
    }

    /// For whoever cannot ask the store.
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

    /// Of a token or a session that is good no more.
    func forget(secretHash: String) {
        state.withLock { state in
            state.tokens[secretHash] = nil
            state.sessions[secretHash] = nil
        }
    }

    func forgetAll() { state.withLock { $0 = State() } }
}
