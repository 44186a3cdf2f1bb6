import Crypto
import FoundationEssentials
import Glibc
import HTTP2
import SwiftASN1
import X509

/// The simulator's own certificate authority: made new with each simulator, its private key never leaves memory.
struct CertificateAuthority: Sendable {
    /// An hour back, for clocks that differ; 30 days on, for a certificate of tests need not last.
    private static let validFromSeconds = -3600
    private static let validToSeconds = 30 * 86_400
    /// RFC 4519 section 2.39: `UID`.
    private static let userID: ASN1ObjectIdentifier = [0, 9, 2342, 19_200_300, 100, 1, 1]

    private let key: P256.Signing.PrivateKey
    private let certificate: Certificate
    /// What a client must trust.
    let pem: [UInt8]

    init(nowMs: Int64) throws(SimulatorError) {
        let key = P256.Signing.PrivateKey()
        self.key = key
        (certificate, pem) = try Self.making {
            let subject = try DistinguishedName { CommonName("Fanfare APNs simulator CA") }
            let extensions = try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey))
            }
            let made = try Self.certificate(subject, extensions, of: key, issuer: subject, signer: key, nowMs: nowMs)
            return (made, try Self.pem(of: made))
        }
    }

    /// For `localhost`, `127.0.0.1`, `::1` and `host`.
    func serverIdentity(host: String, nowMs: Int64) throws(SimulatorError) -> TLSIdentity {
        try Self.making {
            var names: [GeneralName] = [.dnsName("localhost")]
            for address in Set(["127.0.0.1", "::1", host]).sorted() where address != "0.0.0.0" && address != "::" {
                names.append(.ipAddress(ASN1OctetString(contentBytes: try Self.addressBytes(address)[...])))
            }
            let leaf = try leaf(
                DistinguishedName { CommonName("localhost") }, usage: .serverAuth, nowMs: nowMs,
                more: [Certificate.Extension(SubjectAlternativeNames(names), critical: false)])
            return TLSIdentity(certificateChain: leaf.certificate + pem, privateKey: leaf.key)
        }
    }

    /// A client certificate as Apple issues for one app: the bundle id as the subject's `UID`, and the extension of its
    /// environment (`ProviderProtocol` section 2).
    func clientIdentity(
        topic: String, environment: SimulatorEnvironment, nowMs: Int64
    ) throws(SimulatorError) -> TLSIdentity {
        try Self.making {
            let name = "Apple Push Services: \(topic)"
            let subject = DistinguishedName([
                RelativeDistinguishedName(.init(type: .RDNAttributeType.commonName, utf8String: name)),
                RelativeDistinguishedName(.init(type: Self.userID, utf8String: topic)),
            ])
            // Its value is NULL.
            let marker = Certificate.Extension(
                oid: try ASN1ObjectIdentifier(dotRepresentation: environment.certificateExtension), critical: false,
                value: [5, 0])
            let leaf = try leaf(subject, usage: .clientAuth, nowMs: nowMs, more: [marker])
            return TLSIdentity(certificateChain: leaf.certificate, privateKey: leaf.key)
        }
    }

    /// Both in PEM.
    private func leaf(
        _ subject: DistinguishedName, usage: ExtendedKeyUsage.Usage, nowMs: Int64, more: [Certificate.Extension]
    ) throws -> (certificate: [UInt8], key: [UInt8]) {
        let leafKey = P256.Signing.PrivateKey()
        var extensions = try Certificate.Extensions {
            Critical(BasicConstraints.notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true))
            try ExtendedKeyUsage([usage])
            SubjectKeyIdentifier(hash: Certificate.PublicKey(leafKey.publicKey))
            AuthorityKeyIdentifier(
                keyIdentifier: SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey)).keyIdentifier)
        }
        for one in more { try extensions.append(one) }
        let made = try Self.certificate(
            subject, extensions, of: leafKey, issuer: certificate.subject, signer: key, nowMs: nowMs)
        return (try Self.pem(of: made), Array((leafKey.pemRepresentation + "\n").utf8))
    }

    private static func certificate(
        _ subject: DistinguishedName, _ extensions: Certificate.Extensions, of key: P256.Signing.PrivateKey,
        issuer: DistinguishedName, signer: P256.Signing.PrivateKey, nowMs: Int64
    ) throws -> Certificate {
        let now = Date(timeIntervalSince1970: Double(nowMs / 1000))
        return try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: now.addingTimeInterval(Double(validFromSeconds)),
            notValidAfter: now.addingTimeInterval(Double(validToSeconds)), issuer: issuer, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions,
            issuerPrivateKey: Certificate.PrivateKey(signer))
    }

    private static func pem(of certificate: Certificate) throws -> [UInt8] {
        Array((try certificate.serializeAsPEM().pemString + "\n").utf8)
    }

    /// 4 or 16 bytes in network order.
    private static func addressBytes(_ text: String) throws(SimulatorError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
        if inet_pton(AF_INET6, text, &bytes) == 1 { return bytes }
        throw .certificateNotMade(reason: "\"\(text)\" is not an IP address")
    }

    /// Turns the errors of swift-certificates into ours.
    private static func making<Made>(_ body: () throws -> Made) throws(SimulatorError) -> Made {
        do {
            return try body()
        } catch let error as SimulatorError {
            throw error
        } catch {
            throw .certificateNotMade(reason: "\(error)")
        }
    }
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
