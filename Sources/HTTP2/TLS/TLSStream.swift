import COpenSSL
import Glibc

/// One TLS connection over a non-blocking socket that it does not own.
struct TLSStream: ~Copyable {
    enum Handshake {
        case done, wantsRead, wantsWrite
        case failed(HandshakeFault)
    }

    enum Reading {
        case bytes(Int)
        case wouldBlock
        /// The peer sends no more, or the connection broke. The text is the reason of a break.
        case ended(String?)
    }

    enum Writing {
        case bytes(Int)
        case wouldBlock
        case broken(String?)
    }

    /// The number of bytes read from the socket by one system call: several records.
    private static let readAheadBytes = 64 * 1024

    private let handle: OpaquePointer
    /// The context, retained because the handle refers to its session store unretained.
    private let context: TLSContext
    private let isClient: Bool

    /// Returns `nil` if memory has run out.
    init?(server context: TLSContext, socket: Int32) {
        guard let handle = Self.handle(context, socket) else { return nil }
        SSL_set_accept_state(handle)
        self.handle = handle
        self.context = context
        isClient = false
    }

    /// Returns `nil` if memory has run out. The peer must show a certificate for its name or address.
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
        // SSL_get_error reads this thread's error queue, which must not contain another connection's errors.
        ERR_clear_error()
        let result = SSL_do_handshake(handle)
        if result == 1 { return isClient && !isHTTP2 ? .failed(.notHTTP2) : .done }
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        default:
            let verified = SSL_get_verify_result(handle)
            guard verified == Int(X509_V_OK) || !isClient else {
                // If memory for a key is missing, OpenSSL reports the key as too weak.
                if MemoryProbe.isShort { return .failed(.broken(MemoryProbe.summary)) }
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

    /// Whether a TLS session was resumed, so that no full handshake was needed.
    var isResumed: Bool { SSL_session_reused(handle) == 1 }

    /// Returns the reason for a broken connection, or `nil` if the peer only closed it.
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

    /// Writes bytes. `buffer` must not be empty.
    borrowing func write(_ buffer: UnsafeRawBufferPointer) -> Writing {
        ERR_clear_error()
        let count = SSL_write(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(handle, count) {
        case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ: return .wouldBlock
        default: return .broken(Self.fault())
        }
    }

    /// Tells the peer that no more data comes, if the socket accepts it immediately.
    borrowing func sayGoodbye() {
        ERR_clear_error()
        SSL_shutdown(handle)
    }

    /// Returns the peer's certificate after the handshake, or `nil` if the peer showed none.
    borrowing func peerCertificate() -> PeerCertificate? {
        guard let certificate = SSL_get1_peer_certificate(handle) else { return nil }
        defer { X509_free(certificate) }
        return PeerCertificate(certificate, isTrusted: SSL_get_verify_result(handle) == Int(X509_V_OK))
    }
}

/// The server that a client intends to reach. The server's certificate must name it.
package struct TLSPeer: Hashable, Sendable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Sets SNI and the name to verify. SNI gets only a name, never an address (RFC 6066 section 3). Returns false if
    /// memory has run out.
    func expect(on handle: OpaquePointer) -> Bool {
        if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), host) == 1 { return true }
        ERR_clear_error()
        SSL_set_hostflags(handle, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return SSL_set1_host(handle, host) == 1 && fanfare_tls_set_server_name(handle, host) == 1
    }
}

/// The reason why TLS was not established.
package enum HandshakeFault: Hashable, Sendable {
    /// The server's certificate does not verify. The text is OpenSSL's.
    case untrusted(String)
    /// TLS was established, and the server did not choose `h2`.
    case notHTTP2
    /// TLS failed, for example by an alert, or by bytes that are not TLS.
    case broken(String)
    /// The connection ended during the handshake. The text is the system's, if there is one.
    case closed(String?)
    case timedOut
}

/// The contents of a peer's certificate, as values.
package struct PeerCertificate: Hashable, Sendable {
    /// Whether the certificate is in date and leads to an authority that this side trusts.
    package let isTrusted: Bool
    /// `UID` of the subject (RFC 4519 section 2.39).
    package let subjectUserID: String?
    /// The dotted object identifiers of its extensions.
    package let extensions: Set<String>

    init(_ certificate: OpaquePointer, isTrusted: Bool) {
        self.isTrusted = isTrusted
        subjectUserID = Self.userID(of: certificate)
        var found: Set<String> = []
        for index in 0..<X509_get_ext_count(certificate) {
            guard let object = X509_EXTENSION_get_object(X509_get_ext(certificate, index)) else { continue }
            var text = [CChar](repeating: 0, count: 128)
            let length = OBJ_obj2txt(&text, Int32(text.count), object, 1)
            guard length > 0, Int(length) < text.count else { continue }
            found.insert(String(decoding: text.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        extensions = found
    }

    private static func userID(of certificate: OpaquePointer) -> String? {
        guard let subject = X509_get_subject_name(certificate) else { return nil }
        let index = X509_NAME_get_index_by_NID(subject, NID_userId, -1)
        guard index >= 0, let entry = X509_NAME_get_entry(subject, index) else { return nil }
        guard let data = X509_NAME_ENTRY_get_data(entry), let bytes = ASN1_STRING_get0_data(data) else { return nil }
        let buffer = UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(data)))
        return String(decoding: buffer, as: UTF8.self)
    }
}
