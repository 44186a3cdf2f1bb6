import COpenSSL

/// The server a client means to reach: what its certificate must name.
package struct TLSPeer: Hashable, Sendable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Sets SNI and what is verified. Only a name goes into SNI (RFC 6066 section 3). False when memory has run out.
    func expect(on handle: OpaquePointer) -> Bool {
        if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), host) == 1 { return true }
        ERR_clear_error()
        SSL_set_hostflags(handle, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return SSL_set1_host(handle, host) == 1 && fanfare_tls_set_server_name(handle, host) == 1
    }
}

/// Why TLS was not agreed.
package enum HandshakeFault: Hashable, Sendable {
    /// The server's certificate does not verify, in OpenSSL's words.
    case untrusted(String)
    /// TLS stands, and the server chose no `h2`.
    case notHTTP2
    /// By an alert, or by bytes that are no TLS.
    case broken(String)
    /// The connection ended on the way, in the system's words if it has any.
    case closed(String?)
    case timedOut
}
