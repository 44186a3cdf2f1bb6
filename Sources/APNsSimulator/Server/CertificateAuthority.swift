import COpenSSL
import HTTP2

/// The simulator's own certificate authority. Each simulator creates a new one, and its private key never leaves
/// memory.
///
/// It uses OpenSSL, which other targets need anyway. swift-certificates, with its BoringSSL, would make a clean build
/// take 50 % longer.
///
/// `@unchecked Sendable`: the handles do not change after `init`. Signing with a key from several threads is safe.
final class CertificateAuthority: @unchecked Sendable {
    private let key: KeyPair
    private let certificate: Certificate
    /// The certificate that a client must trust.
    let pem: [UInt8]

    init(nowMs: Int64) throws(SimulatorError) {
        key = try KeyPair()
        var request = CertificateRequest(commonName: "Fanfare APNs simulator CA")
        request.extensions = [
            (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
            (NID_subject_key_identifier, "hash"),
        ]
        certificate = try Certificate(request, of: key, issuer: nil, signer: key, nowMs: nowMs)
        pem = try certificate.pem()
    }

    /// Returns a server certificate for `localhost`, `127.0.0.1`, `::1` and `host`.
    func serverIdentity(host: String, nowMs: Int64) throws(SimulatorError) -> TLSIdentity {
        var request = CertificateRequest(commonName: "localhost")
        let names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
        let extra = host == "127.0.0.1" || host == "::1" || host == "0.0.0.0" || host == "::" ? [] : ["IP:\(host)"]
        request.extensions =
            Self.leafExtensions + [
                (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, (names + extra).joined(separator: ",")),
            ]
        let leafKey = try KeyPair()
        let leaf = try Certificate(request, of: leafKey, issuer: certificate, signer: key, nowMs: nowMs)
        return TLSIdentity(certificateChain: try leaf.pem() + pem, privateKey: try leafKey.pem())
    }

    /// Returns a client certificate like Apple's for one app: the bundle id as the subject's `UID`, and the extension
    /// of its environment (`ProviderProtocol` section 2).
    func clientIdentity(
        topic: String, environment: SimulatorEnvironment, nowMs: Int64
    ) throws(SimulatorError) -> TLSIdentity {
        var request = CertificateRequest(commonName: "Apple Push Services: \(topic)")
        request.userID = topic
        request.extensions = Self.leafExtensions + [(NID_ext_key_usage, "clientAuth")]
        request.marker = environment.certificateExtension
        let leafKey = try KeyPair()
        let leaf = try Certificate(request, of: leafKey, issuer: certificate, signer: key, nowMs: nowMs)
        return TLSIdentity(certificateChain: try leaf.pem(), privateKey: try leafKey.pem())
    }

    private static let leafExtensions: [(Int32, String)] = [
        (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
        (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
    ]
}

extension SimulatorEnvironment {
    /// The extension of a client certificate for this environment.
    var certificateExtension: String {
        switch self {
        case .production: "1.2.840.113635.100.6.3.2"
        case .sandbox: "1.2.840.113635.100.6.3.1"
        }
    }
}

/// The contents of a certificate to be created.
struct CertificateRequest {
    var commonName: String
    var userID: String?
    /// OpenSSL's identifier and its configuration text, in this order.
    var extensions: [(Int32, String)] = []
    /// The dotted identifier of an extension whose value is NULL.
    var marker: String?

    init(commonName: String) {
        self.commonName = commonName
    }
}

/// An X.509 certificate. It owns the OpenSSL object.
final class Certificate {
    /// The validity begins an hour ago, so that clocks may differ, and ends in 30 days, which is enough for tests.
    private static let validFromSeconds = -3600
    private static let validToSeconds = 30 * 86_400

    private let handle: OpaquePointer

    /// Creates a certificate. It is self-signed if `issuer` is `nil`.
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

/// A private key on P-256. It owns the OpenSSL key.
final class KeyPair {
    let handle: OpaquePointer

    init() throws(SimulatorError) {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { throw .fromOpenSSL() }
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        let isMade =
            EVP_PKEY_keygen_init(context) == 1
            && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
            && EVP_PKEY_keygen(context, &made) == 1
        guard isMade, let made else { throw .fromOpenSSL() }
        handle = made
    }

    deinit {
        EVP_PKEY_free(handle)
    }

    func pem() throws(SimulatorError) -> [UInt8] {
        try MemoryBIO.bytes { PEM_write_bio_PKCS8PrivateKey($0, handle, nil, nil, 0, nil, nil) == 1 }
    }
}

/// The output of OpenSSL in memory.
enum MemoryBIO {
    static func bytes(_ write: (OpaquePointer) -> Bool) throws(SimulatorError) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw .fromOpenSSL() }
        defer { BIO_free(bio) }
        guard write(bio) else { throw .fromOpenSSL() }
        let count = BIO_ctrl_pending(bio)
        var bytes = [UInt8](repeating: 0, count: count)
        guard BIO_read(bio, &bytes, Int32(count)) == Int32(count) else { throw .fromOpenSSL() }
        return bytes
    }
}

extension SimulatorError {
    static func fromOpenSSL() -> SimulatorError {
        let code = ERR_get_error()
        ERR_clear_error()
        let text = ERR_reason_error_string(code).map { String(cString: $0) }
        return .certificateNotMade(reason: text ?? "no reason given by OpenSSL")
    }
}
