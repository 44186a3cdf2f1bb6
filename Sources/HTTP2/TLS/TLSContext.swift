import COpenSSL
import Glibc
import Synchronization

/// A certificate with its chain and its key, both PEM, in memory.
package struct TLSIdentity: Hashable, Sendable {
    package var certificateChain: [UInt8]
    package var privateKey: [UInt8]

    package init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}

/// The shared TLS settings of one listener or client: TLS 1.2 or later, and ALPN `h2` only.
///
/// `@unchecked Sendable`: the handle does not change after `init`, and OpenSSL counts its references atomically.
package final class TLSContext: @unchecked Sendable {
    let handle: OpaquePointer
    /// The sessions, on the client's side only.
    let sessions: TLSSessionStore?

    /// Creates the server's side. With `clientAuthorities` (PEM), a client certificate is requested, not required. A
    /// certificate that does not verify is accepted, with ``PeerCertificate/isTrusted`` false.
    package init(server identity: TLSIdentity, clientAuthorities: [UInt8]?) throws(TLSError) {
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw .noContext(reason: TLSError.takeReason()) }
        handle = context
        sessions = nil
        guard fanfare_tls_prepare(context) == 1 else { throw .noContext(reason: TLSError.takeReason()) }
        try Self.use(identity, in: context)
        SSL_CTX_set_client_hello_cb(context, { ssl, alert, _ in TLSContext.requireALPN(ssl, alert) }, nil)
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, chosen, chosenLength, offered, offeredLength, _ in
                TLSContext.chooseH2(
                    chosen, chosenLength, UnsafeBufferPointer(start: offered, count: Int(offeredLength)))
            }, nil)
        if let clientAuthorities { try Self.request(clientAuthorities, in: context) }
    }

    /// Creates the client's side. It verifies the server's chain and name.
    ///
    /// - Parameters:
    ///   - trust: a file of CA certificates (PEM) in place of the system's.
    ///   - identity: the certificate for a server that requests one.
    package init(clientTrusting trust: String?, identity: TLSIdentity?) throws(TLSError) {
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw .noContext(reason: TLSError.takeReason()) }
        handle = context
        sessions = TLSSessionStore()
        guard fanfare_tls_prepare_client(context) == 1 else { throw .noContext(reason: TLSError.takeReason()) }
        TLSSessionStore.gather(from: context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        if let trust {
            guard access(trust, R_OK) == 0 else {
                throw .unreadableAuthorities(path: trust, reason: String(cString: strerror(errno)))
            }
            guard SSL_CTX_load_verify_file(context, trust) == 1 else {
                throw .badAuthorities(path: trust, reason: TLSError.takeReason())
            }
        } else {
            SSL_CTX_set_default_verify_paths(context)
            ERR_clear_error()
        }
        if let identity { try Self.use(identity, in: context) }
    }

    deinit {
        SSL_CTX_free(handle)
    }

    private static func use(_ identity: TLSIdentity, in context: OpaquePointer) throws(TLSError) {
        let chain = certificates(in: identity.certificateChain)
        guard let leaf = chain.first else { throw .badCertificate(reason: TLSError.takeReason()) }
        defer { for certificate in chain { X509_free(certificate) } }
        guard SSL_CTX_use_certificate(context, leaf) == 1 else {
            throw .badCertificate(reason: TLSError.takeReason())
        }
        for certificate in chain.dropFirst() {
            X509_up_ref(certificate)
            // SSL_CTX_add_extra_chain_cert is a macro. It takes over the reference.
            SSL_CTX_ctrl(context, SSL_CTRL_EXTRA_CHAIN_CERT, 0, UnsafeMutableRawPointer(certificate))
        }
        guard let key = withBIO(over: identity.privateKey, { PEM_read_bio_PrivateKey($0, nil, nil, nil) }) else {
            throw .badPrivateKey(reason: TLSError.takeReason())
        }
        defer { EVP_PKEY_free(key) }
        guard SSL_CTX_use_PrivateKey(context, key) == 1, SSL_CTX_check_private_key(context) == 1 else {
            throw .badPrivateKey(reason: TLSError.takeReason())
        }
    }

    private static func request(_ authorities: [UInt8], in context: OpaquePointer) throws(TLSError) {
        let trusted = certificates(in: authorities)
        guard !trusted.isEmpty else { throw .badCertificate(reason: TLSError.takeReason()) }
        let store = SSL_CTX_get_cert_store(context)
        for certificate in trusted {
            X509_STORE_add_cert(store, certificate)
            SSL_CTX_add_client_CA(context, certificate)
            X509_free(certificate)
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, { _, _ in 1 })
    }

    /// Returns every certificate of a PEM text. The caller owns them.
    private static func certificates(in pem: [UInt8]) -> [OpaquePointer] {
        var found: [OpaquePointer] = []
        _ = withBIO(over: pem) { bio -> OpaquePointer? in
            while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) { found.append(certificate) }
            return nil
        }
        // The end of the text leaves "no start line" in the error queue.
        if !found.isEmpty { ERR_clear_error() }
        return found
    }

    private static func withBIO(over bytes: [UInt8], _ body: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        // OpenSSL reads the bytes in place, so they must stay there until it is done.
        bytes.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            return body(bio)
        }
    }

    /// Rejects a client that offers no ALPN at all, because it would never reach the ALPN callback.
    private static func requireALPN(_ ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        var offered: UnsafePointer<UInt8>?
        var length = 0
        let type = UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)
        if SSL_client_hello_get0_ext(ssl, type, &offered, &length) == 1 { return SSL_CLIENT_HELLO_SUCCESS }
        alert?.pointee = TLS1_AD_NO_APPLICATION_PROTOCOL
        return SSL_CLIENT_HELLO_ERROR
    }

    private static func chooseH2(
        _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ chosenLength: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafeBufferPointer<UInt8>
    ) -> Int32 {
        var position = 0
        while position < offered.count, let base = offered.baseAddress {
            let length = Int(offered[position])
            guard position + 1 + length <= offered.count else { break }
            let isH2 = length == 2 && base[position + 1] == UInt8(ascii: "h") && base[position + 2] == UInt8(ascii: "2")
            if isH2 {
                // The result points into the client's list, which outlives the call.
                chosen?.pointee = base + position + 1
                chosenLength?.pointee = 2
                return SSL_TLSEXT_ERR_OK
            }
            position += 1 + length
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}

/// The reason why TLS could not be set up. The texts are from OpenSSL, or from the system for an unreadable file.
package enum TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    case badAuthorities(path: String, reason: String)
    case unreadableAuthorities(path: String, reason: String)
    case badCertificate(reason: String)
    case badPrivateKey(reason: String)
    case noContext(reason: String)

    package var description: String {
        switch self {
        case .unreadableAuthorities(let path, let reason):
            "cannot read the CA certificates in \(path): \(reason); "
                + (["/root/", "/home/"].contains { path.hasPrefix($0) }
                    ? "a service cannot read /root and /home: put the file into /var/lib/fanfare, readable "
                        + "for the user fanfare"
                    : "check the path and its permissions")
        case .badAuthorities(let path, let reason):
            "cannot use the CA certificates in \(path): \(reason); the file must be PEM"
        case .badCertificate(let reason): "cannot use the certificate: \(reason); it must be PEM"
        case .badPrivateKey(let reason):
            "cannot use the private key: \(reason); it must be unencrypted PEM and belong to the certificate"
        case .noContext(let reason): "cannot set up TLS: \(reason)"
        }
    }

    /// Returns the oldest error in this thread's queue, and empties the queue.
    static func takeReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given by OpenSSL" }
        return String(cString: text)
    }
}

/// The TLS sessions that servers issued. The next connection to the same peer resumes one, which saves a round trip and
/// a verification. Each session is used once (RFC 8446 appendix C.4).
///
/// `@unchecked Sendable`: the handles are inside a `Mutex`, and OpenSSL does not change an issued session.
final class TLSSessionStore: @unchecked Sendable {
    private static let sessionsPerPeerMax = 4
    /// The index of the data that OpenSSL reserves for the application in an SSL handle.
    private static let dataIndex: Int32 = 0

    /// The sessions of one peer. A handle refers to it unretained, because it lives as long as the store.
    private final class Shelf: Sendable {
        private let sessions = Mutex<[Session]>([])

        func put(_ session: OpaquePointer) {
            sessions.withLock { sessions in
                if sessions.count >= TLSSessionStore.sessionsPerPeerMax { sessions.removeFirst() }
                sessions.append(Session(handle: session))
            }
        }

        func takeSession() -> Session? {
            sessions.withLock { $0.popLast() }
        }
    }

    /// A session, with one owned reference.
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

    /// Makes OpenSSL deliver new sessions to the peer's shelf.
    static func gather(from context: OpaquePointer) {
        SSL_CTX_sess_set_new_cb(context) { handle, session in
            guard let session, let shelf = SSL_get_ex_data(handle, TLSSessionStore.dataIndex) else { return 0 }
            Unmanaged<Shelf>.fromOpaque(shelf).takeUnretainedValue().put(session)
            // The store now owns the reference.
            return 1
        }
    }

    /// Prepares a handle before the handshake. The store must outlive the handle.
    func prepare(_ handle: OpaquePointer, for peer: TLSPeer) {
        let shelf = shelves.withLock { shelves in
            if let shelf = shelves[peer] { return shelf }
            let shelf = Shelf()
            shelves[peer] = shelf
            return shelf
        }
        SSL_set_ex_data(handle, Self.dataIndex, Unmanaged.passUnretained(shelf).toOpaque())
        // OpenSSL takes its own reference, and does a full handshake if the session is no longer valid.
        if let session = shelf.takeSession() { SSL_set_session(handle, session.handle) }
    }
}
