import COpenSSL
import Synchronization

/// The TLS sessions that servers gave out, to be taken up by the next connection to the same peer: a round trip and a
/// verification less. Each is used once (RFC 8446 appendix C.4).
///
/// `@unchecked Sendable`: the handles are inside a `Mutex`, and OpenSSL does not change a session once it is given out.
final class TLSSessionStore: @unchecked Sendable {
    private static let sessionsPerPeerMax = 4
    /// The slot of an SSL handle that OpenSSL leaves to its user.
    private static let dataIndex: Int32 = 0

    /// The sessions of one peer. A handle refers to it without counting: it lives as long as the store.
    private final class Shelf: Sendable {
        private let sessions = Mutex<[Session]>([])

        func put(_ session: OpaquePointer) {
            sessions.withLock { sessions in
                if sessions.count >= TLSSessionStore.sessionsPerPeerMax { sessions.removeFirst() }
                sessions.append(Session(handle: session))
            }
        }

        func take() -> Session? {
            sessions.withLock { $0.popLast() }
        }
    }

    /// Owns one reference.
    private final class Session: @unchecked Sendable {
        let handle: OpaquePointer

        init(handle: OpaquePointer) {
            self.handle = handle
        }

        deinit {
            SSL_SESSION_free(handle)
        }
    }

    private let shelves = Mutex<[TLSPeer: Shelf]>([:])

    /// Makes OpenSSL hand new sessions over.
    static func gather(from context: OpaquePointer) {
        SSL_CTX_sess_set_new_cb(context) { handle, session in
            guard let session, let shelf = SSL_get_ex_data(handle, TLSSessionStore.dataIndex) else { return 0 }
            Unmanaged<Shelf>.fromOpaque(shelf).takeUnretainedValue().put(session)
            // The reference is ours now.
            return 1
        }
    }

    /// Before the handshake. The store must outlive the handle.
    func prepare(_ handle: OpaquePointer, for peer: TLSPeer) {
        let shelf = shelves.withLock { shelves in
            if let shelf = shelves[peer] { return shelf }
            let shelf = Shelf()
            shelves[peer] = shelf
            return shelf
        }
        SSL_set_ex_data(handle, Self.dataIndex, Unmanaged.passUnretained(shelf).toOpaque())
        // OpenSSL takes a reference of its own, and agrees anew where a session is no longer good.
        if let session = shelf.take() { SSL_set_session(handle, session.handle) }
    }
}
