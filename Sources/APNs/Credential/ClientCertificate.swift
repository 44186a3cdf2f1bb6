import COpenSSL
import HTTP2

/// A TLS client certificate with its private key, checked when loaded (`ProviderProtocol` section 2).
///
/// The transports read the files again by path for each connection, so the next connection uses a renewed file.
package struct ClientCertificate: Hashable, Sendable {
    package enum Form: Hashable, Sendable {
        case pem
        /// PKCS#12: certificate and key in one file.
        case archive
    }

    package let form: Form
    package let certificatePath: String
    /// `nil` if the certificate's file also contains the key.
    package let privateKeyPath: String?
    package let password: String?
    /// The end of validity in milliseconds since 1970, for a timely warning.
    package let expiresAt: Int64
    /// The topics that the certificate is for; empty if it names none.
    package let topics: [String]

    /// - Parameters:
    ///   - certificatePath: PEM, or PKCS#12 if it ends in `.p12` or `.pfx`.
    ///   - privateKeyPath: PEM without a passphrase. `nil` if the key is in the certificate's file.
    ///   - password: the password of the PKCS#12 file.
    ///   - now: milliseconds since 1970.
    package init(
        certificatePath: String, privateKeyPath: String? = nil, password: String? = nil, now: Int64
    ) throws(CredentialError) {
        self.certificatePath = certificatePath
        self.password = password
        let name = certificatePath.lowercased()
        form = name.hasSuffix(".p12") || name.hasSuffix(".pfx") ? .archive : .pem
        self.privateKeyPath = form == .pem ? privateKeyPath : nil
        let pair =
            switch form {
            case .pem: try CertificatePair(certificatePath: certificatePath, privateKeyPath: privateKeyPath)
            case .archive: try CertificatePair(archivePath: certificatePath, password: password)
            }
        expiresAt = try pair.checkedExpiry(now: now)
        topics = pair.topics
    }
}

extension ClientCertificate {
    /// Reads certificate, chain and key from the current files.
    func identity() throws(CredentialError) -> TLSIdentity {
        switch form {
        case .pem:
            let certificate = try CredentialFile(path: certificatePath).bytes
            let key = try privateKeyPath.map { (path) throws(CredentialError) in try CredentialFile(path: path).bytes }
            return TLSIdentity(certificateChain: certificate, privateKey: key ?? certificate)
        case .archive:
            return try CertificatePair(archivePath: certificatePath, password: password).identity()
        }
    }
}

/// A parsed certificate with its key, for checking them. The pair owns both.
final class CertificatePair {
    private let certificate: OpaquePointer
    private let key: OpaquePointer
    private let certificatePath: String
    private let keyPath: String
    /// The chain, a STACK_OF(X509). `nil` for PEM, and for an archive without one.
    private let chain: OpaquePointer?

    /// Reads PEM. If the key has no path, it is read from the certificate's file.
    init(certificatePath: String, privateKeyPath: String?) throws(CredentialError) {
        self.certificatePath = certificatePath
        keyPath = privateKeyPath ?? certificatePath
        let text = PEMText(bytes: try CredentialFile(path: certificatePath).bytes)
        let certificate = try text.certificate(origin: certificatePath)
        do throws(CredentialError) {
            guard privateKeyPath != nil || text.holdsPrivateKey else {
                throw .certificateWithoutKey(path: certificatePath, isArchive: false)
            }
            let keyText = keyPath == certificatePath ? text : PEMText(bytes: try CredentialFile(path: keyPath).bytes)
            key = try keyText.privateKey(origin: keyPath)
        } catch {
            X509_free(certificate)
            throw error
        }
        self.certificate = certificate
        chain = nil
    }

    /// Reads PKCS#12.
    init(archivePath path: String, password: String?) throws(CredentialError) {
        certificatePath = path
        keyPath = path
        let bytes = try CredentialFile(path: path).bytes
        ERR_clear_error()
        let archive = bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_PKCS12(nil, &position, buffer.count)
        }
        guard let archive else {
            throw .malformedCertificate(origin: path, reason: "not PKCS#12 (\(OpenSSLFault.last))")
        }
        defer { PKCS12_free(archive) }
        guard PKCS12_verify_mac(archive, password ?? "", -1) == 1 || PKCS12_verify_mac(archive, nil, 0) == 1 else {
            ERR_clear_error()
            throw .wrongPassword(path: path, wasGiven: password != nil)
        }
        var parsedKey: OpaquePointer?
        var parsedCertificate: OpaquePointer?
        var parsedChain: OpaquePointer?
        guard PKCS12_parse(archive, password ?? "", &parsedKey, &parsedCertificate, &parsedChain) == 1 else {
            throw .unsupportedArchive(path: path, reason: OpenSSLFault.last)
        }
        guard let parsedKey, let parsedCertificate else {
            EVP_PKEY_free(parsedKey)
            X509_free(parsedCertificate)
            fanfare_x509_stack_free(parsedChain)
            if parsedKey == nil { throw .certificateWithoutKey(path: path, isArchive: true) }
            throw .noCertificate(origin: path, holds: "PKCS#12 without a certificate")
        }
        key = parsedKey
        certificate = parsedCertificate
        chain = parsedChain
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
        fanfare_x509_stack_free(chain)
    }

    /// Returns the pair and its chain as PEM, in memory.
    func identity() throws(CredentialError) -> TLSIdentity {
        let chained = fanfare_x509_stack_count(chain)
        let certificates = try text { memory in
            guard PEM_write_bio_X509(memory, certificate) == 1 else { return false }
            return (0..<chained).allSatisfy { PEM_write_bio_X509(memory, fanfare_x509_stack_item(chain, $0)) == 1 }
        }
        let key = try text { PEM_write_bio_PrivateKey($0, self.key, nil, nil, 0, nil, nil) == 1 }
        return TLSIdentity(certificateChain: certificates, privateKey: key)
    }

    private func text(_ write: (OpaquePointer) -> Bool) throws(CredentialError) -> [UInt8] {
        ERR_clear_error()
        guard let memory = BIO_new(BIO_s_mem()) else {
            throw .malformedCertificate(origin: certificatePath, reason: "no memory")
        }
        defer { BIO_free(memory) }
        guard write(memory) else {
            throw .malformedCertificate(origin: certificatePath, reason: OpenSSLFault.last)
        }
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(memory))
        let count = BIO_read(memory, &bytes, Int32(clamping: bytes.count))
        return Array(bytes.prefix(Int(max(0, count))))
    }

    /// The topics of the subject and of Apple's extension for certificates with several topics, each once.
    var topics: [String] {
        var text = [CChar](repeating: 0, count: 256)
        let count = Int(fanfare_x509_user_id(certificate, &text, Int32(text.count)))
        let subject = text.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        var start: UnsafePointer<UInt8>?
        let length = Int(fanfare_x509_extension(certificate, AppleTopics.oid, &start))
        let listed = AppleTopics.names(in: Array(UnsafeBufferPointer(start: start, count: length)))
        var topics = subject.isEmpty ? [] : [String(decoding: subject, as: UTF8.self)]
        for topic in listed where !topics.contains(topic) { topics.append(topic) }
        return topics
    }

    /// Returns the end of validity in milliseconds since 1970, after checking key and dates.
    func checkedExpiry(now: Int64) throws(CredentialError) -> Int64 {
        guard X509_check_private_key(certificate, key) == 1 else {
            ERR_clear_error()
            throw .keyMismatch(certificate: certificatePath, key: keyPath)
        }
        guard let start = Self.milliseconds(X509_get0_notBefore(certificate)),
            let end = Self.milliseconds(X509_get0_notAfter(certificate))
        else { throw .malformedCertificate(origin: certificatePath, reason: "its dates cannot be read") }
        if now < start {
            let moment = Self.summary(X509_get0_notBefore(certificate))
            throw .certificateNotYetValid(path: certificatePath, validFrom: moment)
        }
        if now >= end {
            throw .certificateExpired(path: certificatePath, expiredAt: Self.summary(X509_get0_notAfter(certificate)))
        }
        return end
    }

    private static func milliseconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_TIME_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return (Int64(days) * 86_400 + Int64(seconds)) * 1000
    }

    /// Returns a time as OpenSSL prints it: `Nov 21 02:29:00 2026 GMT`.
    private static func summary(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        guard let memory = BIO_new(BIO_s_mem()) else { return "an unknown time" }
        defer { BIO_free(memory) }
        guard ASN1_TIME_print(memory, time) == 1 else { return "an unknown time" }
        var text = [UInt8](repeating: 0, count: 64)
        let count = BIO_read(memory, &text, Int32(text.count))
        return String(decoding: text.prefix(Int(max(0, count))), as: UTF8.self)
    }
}

/// The extension that lists the topics of a certificate: a SEQUENCE of texts, each followed by a SEQUENCE of kinds.
enum AppleTopics {
    static let oid = "1.2.840.113635.100.6.3.6"
    private static let sequence: UInt8 = 0x30
    private static let text: UInt8 = 0x0C

    /// Returns the listed topics, or an empty array if the bytes are no such list.
    static func names(in bytes: [UInt8]) -> [String] {
        guard let list = element(bytes[...]), list.tag == sequence else { return [] }
        var names: [String] = []
        var rest = list.content
        while let next = element(rest) {
            if next.tag == text { names.append(String(decoding: next.content, as: UTF8.self)) }
            rest = next.rest
        }
        return names
    }

    /// Returns the first element of DER, or `nil` if it is incomplete.
    private static func element(
        _ bytes: ArraySlice<UInt8>
    ) -> (tag: UInt8, content: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
        guard bytes.count >= 2 else { return nil }
        let tag = bytes[bytes.startIndex]
        var length = Int(bytes[bytes.startIndex + 1])
        var begin = bytes.startIndex + 2
        if length >= 0x80 {
            let count = length & 0x7F
            guard (1...2).contains(count), bytes.endIndex - begin >= count else { return nil }
            length = bytes[begin..<begin + count].reduce(0) { $0 << 8 | Int($1) }
            begin += count
        }
        guard bytes.endIndex - begin >= length else { return nil }
        return (tag, bytes[begin..<begin + length], bytes[(begin + length)...])
    }
}
