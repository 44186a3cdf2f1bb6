import HTTP2

extension ClientCertificate {
    /// Certificate, chain and key, read from the files as they are now.
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
