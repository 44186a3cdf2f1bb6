import COpenSSL

/// What a certificate is to say.
struct CertificateRequest {
    var commonName: String
    var userID: String?
    /// OpenSSL's identifier and its configuration text, in this order.
    var extensions: [(Int32, String)] = []
    /// A dotted identifier of an extension whose value is NULL.
    var marker: String?

    init(commonName: String) {
        self.commonName = commonName
    }
}

/// An X.509 certificate. Owns the OpenSSL object.
final class Certificate {
    /// A bit in the past, for clocks differ; short, for it is for tests.
    private static let validFromSeconds = -3600
    private static let validToSeconds = 30 * 86_400

    private let handle: OpaquePointer

    /// `issuer` nil: signs itself.
    init(
        _ request: CertificateRequest, of key: KeyPair, issuer: Certificate?, signer: KeyPair, nowMs: Int64
    ) throws(SimulatorError) {
        guard let made = X509_new() else { throw .fromOpenSSL() }
        handle = made
        let now = Int(nowMs / 1000)
        var isDone = X509_set_version(made, 2) == 1 && X509_set_pubkey(made, key.handle) == 1
        isDone = isDone && ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), UInt64.random(in: 1..<1 << 62)) == 1
        isDone = isDone && ASN1_TIME_set(X509_getm_notBefore(made), now + Self.validFromSeconds) != nil
        isDone = isDone && ASN1_TIME_set(X509_getm_notAfter(made), now + Self.validToSeconds) != nil
        guard isDone else { throw .fromOpenSSL() }
        try Self.name(X509_get_subject_name(made), NID_commonName, request.commonName)
        if let userID = request.userID { try Self.name(X509_get_subject_name(made), NID_userId, userID) }
        guard X509_set_issuer_name(made, X509_get_subject_name(issuer?.handle ?? made)) == 1 else {
            throw .fromOpenSSL()
        }
        for (identifier, text) in request.extensions { try add(identifier, text, issuer: issuer) }
        if let marker = request.marker { try add(marker: marker) }
        guard X509_sign(made, signer.handle, EVP_sha256()) > 0 else { throw .fromOpenSSL() }
    }

    deinit {
        X509_free(handle)
    }

    func pem() throws(SimulatorError) -> [UInt8] {
        try MemoryBIO.bytes { PEM_write_bio_X509($0, handle) == 1 }
    }

    private static func name(_ name: OpaquePointer?, _ identifier: Int32, _ text: String) throws(SimulatorError) {
        let bytes = Array(text.utf8)
        let added = X509_NAME_add_entry_by_NID(name, identifier, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0)
        guard added == 1 else { throw .fromOpenSSL() }
    }

    private func add(_ identifier: Int32, _ text: String, issuer: Certificate?) throws(SimulatorError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer?.handle ?? handle, handle, nil, nil, 0)
        guard let made = X509V3_EXT_conf_nid(nil, &context, identifier, text) else { throw .fromOpenSSL() }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(handle, made, -1) == 1 else { throw .fromOpenSSL() }
    }

    private func add(marker: String) throws(SimulatorError) {
        let null: [UInt8] = [5, 0]
        guard let identifier = OBJ_txt2obj(marker, 1), let value = ASN1_STRING_type_new(V_ASN1_OCTET_STRING) else {
            throw .fromOpenSSL()
        }
        defer {
            ASN1_OBJECT_free(identifier)
            ASN1_STRING_free(value)
        }
        guard ASN1_STRING_set(value, null, 2) == 1,
            let made = X509_EXTENSION_create_by_OBJ(nil, identifier, 0, value)
        else { throw .fromOpenSSL() }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(handle, made, -1) == 1 else { throw .fromOpenSSL() }
    }
}
