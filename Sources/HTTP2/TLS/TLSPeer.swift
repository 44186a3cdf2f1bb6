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

/// What the certificate of a peer says, as values.
package struct PeerCertificate: Hashable, Sendable {
    /// It is in date and leads to an authority that this side trusts.
    package let isTrusted: Bool
    /// `UID` of the subject (RFC 4519 section 2.39).
    package let subjectUserID: String?
    /// Dotted object identifiers of its extensions.
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
