import COpenSSL

/// A TLS client certificate with its private key, checked when loaded (`ProviderProtocol` section 2).
///
/// The transports load the files again by path for each connection, so a renewed file is picked up by the next one.
package struct ClientCertificate: Hashable, Sendable {
    package enum Form: Hashable, Sendable {
        case pem
        /// PKCS#12: certificate and key in one file.
        case archive
    }

    package let form: Form
    package let certificatePath: String
    /// Nil where the certificate's file holds the key as well.
    package let privateKeyPath: String?
    package let password: String?
    /// End of validity in milliseconds since 1970, for a warning in good time.
    package let expiresAt: Int64

    /// - Parameters:
    ///   - certificatePath: PEM, or PKCS#12 where it ends in `.p12` or `.pfx`.
    ///   - privateKeyPath: PEM without passphrase; nil where the key is in the certificate's file.
    ///   - password: of the PKCS#12 file.
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
    }
}
