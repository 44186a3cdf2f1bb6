import COpenSSL
import Glibc

/// One TLS connection over a non-blocking socket, which it does not own.
struct TLSStream: ~Copyable {
    enum Handshake {
        case done, wantsRead, wantsWrite
        case failed(HandshakeFault)
    }

    enum Reading {
        case bytes(Int)
        case wouldBlock
        /// The peer said that it sends no more, or the connection broke: then in words.
        case ended(String?)
    }

    enum Writing {
        case bytes(Int)
        case wouldBlock
        case broken(String?)
    }

    /// Bytes taken from the socket by one system call, several records long.
    private static let readAheadBytes = 64 * 1024

    private let handle: OpaquePointer
    /// Kept because the handle refers to the context's session store without counting.
    private let context: TLSContext
    private let isClient: Bool

    /// Nil when memory has run out.
    init?(server context: TLSContext, socket: Int32) {
        guard let handle = Self.handle(context, socket) else { return nil }
        SSL_set_accept_state(handle)
        self.handle = handle
        self.context = context
        isClient = false
    }

    /// Nil when memory has run out. The peer must show a certificate for its name or address.
    init?(client context: TLSContext, to peer: TLSPeer, socket: Int32) {
        guard let handle = Self.handle(context, socket) else { return nil }
        guard peer.expect(on: handle) else {
            SSL_free(handle)
            return nil
        }
        context.sessions?.prepare(handle, for: peer)
        SSL_set_connect_state(handle)
        self.handle = handle
        self.context = context
        isClient = true
    }

    private static func handle(_ context: TLSContext, _ socket: Int32) -> OpaquePointer? {
        guard let handle = SSL_new(context.handle) else { return nil }
        guard SSL_set_fd(handle, socket) == 1 else {
            SSL_free(handle)
            return nil
        }
        SSL_set_read_ahead(handle, 1)
        SSL_set_default_read_buffer_len(handle, readAheadBytes)
        return handle
    }

    deinit {
        SSL_free(handle)
    }

    borrowing func handshake() -> Handshake {
        // SSL_get_error reads this thread's error queue: what another connection left there must not count.
        ERR_clear_error()
        let result = SSL_do_handshake(handle)
        if result == 1 { return isClient && !isHTTP2 ? .failed(.notHTTP2) : .done }
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        default:
            let verified = SSL_get_verify_result(handle)
            guard verified == Int(X509_V_OK) || !isClient else {
                return .failed(.untrusted(String(cString: X509_verify_cert_error_string(verified))))
            }
            return .failed(
                ERR_peek_error() == 0 ? .closed(Self.fault()) : Self.fault().map { .broken($0) } ?? .closed(nil))
        }
    }

    private var isHTTP2: Bool {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(handle, &name, &length)
        return UnsafeBufferPointer(start: name, count: Int(length)).elementsEqual("h2".utf8)
    }

    /// The session was taken up again instead of being agreed anew.
    var isResumed: Bool { SSL_session_reused(handle) == 1 }

    /// What broke the connection, after an error that is not about waiting; nil: the peer just closed it.
    private static func fault() -> String? {
        let systemCode = errno
        let code = ERR_peek_error()
        if code != 0 {
            let text = TLSError.takeReason()
            return text == "unexpected eof while reading" ? nil : text
        }
        return systemCode == 0 ? nil : String(cString: strerror(systemCode))
    }

    borrowing func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        ERR_clear_error()
        let count = SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(handle, count) {
        case SSL_ERROR_WANT_READ: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .ended(nil)
        default: return .ended(Self.fault())
        }
    }

    /// `buffer` must not be empty.
    borrowing func write(_ buffer: UnsafeRawBufferPointer) -> Writing {
        ERR_clear_error()
        let count = SSL_write(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(handle, count) {
        case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ: return .wouldBlock
        default: return .broken(Self.fault())
        }
    }

    /// Tells the peer that no more comes, if the socket takes it at once.
    borrowing func sayGoodbye() {
        ERR_clear_error()
        SSL_shutdown(handle)
    }

    /// After the handshake; nil when the peer showed none.
    borrowing func peerCertificate() -> PeerCertificate? {
        guard let certificate = SSL_get1_peer_certificate(handle) else { return nil }
        defer { X509_free(certificate) }
        return PeerCertificate(certificate, isTrusted: SSL_get_verify_result(handle) == Int(X509_V_OK))
    }
}
