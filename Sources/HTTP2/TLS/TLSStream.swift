import COpenSSL

/// One TLS connection over a non-blocking socket, which it does not own.
struct TLSStream: ~Copyable {
    enum Handshake {
        case done, wantsRead, wantsWrite, failed
    }

    enum Reading {
        case bytes(Int)
        case wouldBlock
        /// The peer said that it sends no more, or the connection broke.
        case ended
    }

    enum Writing {
        case bytes(Int)
        case wouldBlock
        case broken
    }

    /// Bytes taken from the socket by one system call, several records long.
    private static let readAheadBytes = 64 * 1024

    private let handle: OpaquePointer

    /// Nil when memory has run out.
    init?(server context: TLSContext, socket: Int32) {
        guard let handle = SSL_new(context.handle) else { return nil }
        guard SSL_set_fd(handle, socket) == 1 else {
            SSL_free(handle)
            return nil
        }
        SSL_set_read_ahead(handle, 1)
        SSL_set_default_read_buffer_len(handle, Self.readAheadBytes)
        SSL_set_accept_state(handle)
        self.handle = handle
    }

    deinit {
        SSL_free(handle)
    }

    borrowing func handshake() -> Handshake {
        // SSL_get_error reads this thread's error queue: what another connection left there must not count.
        ERR_clear_error()
        let result = SSL_do_handshake(handle)
        if result == 1 { return .done }
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        default: return .failed
        }
    }

    borrowing func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        ERR_clear_error()
        let count = SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        if count > 0 { return .bytes(Int(count)) }
        return SSL_get_error(handle, count) == SSL_ERROR_WANT_READ ? .wouldBlock : .ended
    }

    /// `buffer` must not be empty.
    borrowing func write(_ buffer: UnsafeRawBufferPointer) -> Writing {
        ERR_clear_error()
        let count = SSL_write(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(handle, count) {
        case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ: return .wouldBlock
        default: return .broken
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
