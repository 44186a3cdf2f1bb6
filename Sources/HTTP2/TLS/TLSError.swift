import COpenSSL

/// Why TLS could not be set up. The texts are OpenSSL's.
package enum TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    case badAuthorities(path: String, reason: String)
    case badCertificate(reason: String)
    case badPrivateKey(reason: String)
    case noContext(reason: String)

    package var description: String {
        switch self {
        case .badAuthorities(let path, let reason):
            "cannot use the CA certificates in \(path): \(reason); it must be PEM"
        case .badCertificate(let reason): "cannot use the certificate: \(reason); it must be PEM"
        case .badPrivateKey(let reason):
            "cannot use the private key: \(reason); it must be unencrypted PEM and belong to the certificate"
        case .noContext(let reason): "cannot set up TLS: \(reason)"
        }
    }

    /// The oldest error in this thread's queue, which is then emptied.
    static func takeReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given by OpenSSL" }
        return String(cString: text)
    }
}
