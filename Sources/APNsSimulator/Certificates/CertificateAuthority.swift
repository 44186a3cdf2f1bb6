import COpenSSL
import HTTP2

/// The simulator's own certificate authority: made new with each simulator, its private key never leaves memory.
///
/// `@unchecked Sendable`: the handles are not changed after `init`, and signing with a key from several threads is safe.
final class CertificateAuthority: @unchecked Sendable {
    private let key: KeyPair
    private let certificate: Certificate
    /// What a client must trust.
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

    /// For `localhost`, `127.0.0.1`, `::1` and `host`.
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

    /// A client certificate as Apple issues for one app: the bundle id as the subject's `UID`, and the extension of its
    /// environment (`apns-protocol.md` section 2).
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
    /// The extension of a client certificate that is good for this environment.
    var certificateExtension: String {
        switch self {
        case .production: "1.2.840.113635.100.6.3.2"
        case .sandbox: "1.2.840.113635.100.6.3.1"
        }
    }
}
