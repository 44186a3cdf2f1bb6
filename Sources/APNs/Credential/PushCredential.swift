import Logging

/// The proof of identity towards APNs (`ProviderProtocol` section 2).
package enum PushCredential: Sendable {
    /// `authorization: bearer <jwt>` on every request.
    case token(ProviderTokenSource)
    /// A TLS client certificate, PEM or PKCS#12.
    case certificate(ClientCertificate)
}

extension PushCredential {
    /// Returns the current provider token, or `nil` for a certificate.
    func token() throws(CredentialError) -> ProviderToken? {
        switch self {
        case .token(let source): try source.authorization()
        case .certificate: nil
        }
    }

    /// Ensures that ``token()`` can read a token from memory while the work runs.
    func keepFresh<Value: Sendable>(during work: () async throws -> Value) async rethrows -> Value {
        switch self {
        case .token(let source): try await source.keepFresh(during: work)
        case .certificate: try await work()
        }
    }

    /// Tells the token source what a response says about the token of this generation (`ProviderProtocol` section 3).
    ///
    /// - Parameter logger: the lane's logger, which names the environment.
    func heed(_ answer: PushResponse, tokenGeneration: Int, logger: Logger) {
        guard case .token(let source) = self else { return }
        if answer.reason == .expiredProviderToken { source.markExpired(tokenGeneration) }
        if answer.reason == .tooManyProviderTokenUpdates, source.holdRenewal() {
            logger.warning(
                """
                TooManyProviderTokenUpdates: another program signs tokens with this key; this process signs none for 20 \
                minutes
                """,
                metadata: ["credential": "\(source.name)"])
        }
    }
}

extension CredentialError {
    /// Whether the fault is temporary, so that a retry may succeed.
    package var isPassing: Bool {
        if case .exhausted = self { true } else { false }
    }
}

/// The reason why a key or certificate cannot be used. `origin` is the file's path, or "the key" for text given
/// directly.
package enum CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// This process has no descriptors or memory left to read the file. The fault is no evidence about the file.
    case exhausted(path: String, reason: String)
    /// `holds` names the actual contents of the file.
    case noPrivateKey(origin: String, holds: String)
    case encryptedKey(origin: String)
    case wrongKeyKind(origin: String, kind: String)
    case malformedKey(origin: String, reason: String)
    case signingFailed(reason: String)
    /// No provider token is usable now, and the next one is being fetched. Try again a moment later.
    case renewalPending
    /// APNs called a fresh provider token expired (`ProviderProtocol` section 3). Signing another one would not help.
    case clockWrong(tokenAgeSeconds: Int64)

    case noCertificate(origin: String, holds: String)
    /// The certificate's file contains no key, and no other file was named.
    case certificateWithoutKey(path: String, isArchive: Bool)
    case malformedCertificate(origin: String, reason: String)
    case wrongPassword(path: String, wasGiven: Bool)
    case unsupportedArchive(path: String, reason: String)
    case keyMismatch(certificate: String, key: String)
    case certificateExpired(path: String, expiredAt: String)
    case certificateNotYetValid(path: String, validFrom: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let reason):
            "cannot read \(path): \(reason); check the path and that this user may read the file"
        case .exhausted(let path, let reason):
            "cannot read \(path) now: \(reason); raise the limit (LimitNOFILE=, LimitAS=, ulimit), or try again"
        case .noPrivateKey(let origin, let holds):
            "\(origin) is \(holds), not a private key; use the AuthKey_<KeyID>.p8 file from developer.apple.com"
        case .encryptedKey(let origin):
            "the key in \(origin) is encrypted with a passphrase; store it without one (openssl pkcs8 -topk8 -nocrypt) "
                + "and protect the file by its mode; only a .p12 may have a password"
        case .wrongKeyKind(let origin, let kind):
            "\(origin) is \(kind); APNs accepts only an EC key on curve P-256, as in the .p8 file from Apple"
        case .malformedKey(let origin, let reason):
            "\(origin) is damaged: \(reason); restore it from a backup, or create another key at developer.apple.com"
        case .signingFailed(let reason):
            "cannot sign a provider token: \(reason)"
        case .renewalPending:
            "the provider token is being renewed"
        case .clockWrong(let age):
            "APNs rejects a provider token signed \(age) s ago as expired: this machine's clock is wrong; "
                + "set the clock (timedatectl) and restart"
        default:
            certificateDescription
        }
    }

    /// The places where the operator sets the password.
    private var passwordPlaces: String {
        "in a file named by certificate_password_path next to certificate_path, or as FANFARE_CERTIFICATE_PASSWORD in "
            + "the environment"
    }

    private var certificateDescription: String {
        switch self {
        case .noCertificate(let origin, let holds):
            "\(origin) is \(holds), not a certificate; give the push certificate as PEM or .p12"
        case .certificateWithoutKey(let path, let isArchive):
            isArchive
                ? "\(path) holds a certificate without its private key; export both together from the keychain"
                : "\(path) holds a certificate without its private key; name the key's file as private_key_path"
        case .malformedCertificate(let origin, let reason):
            "\(origin) is damaged: \(reason); export the certificate again"
        case .wrongPassword(let path, let wasGiven):
            wasGiven
                ? "the password for \(path) is wrong; give the export password, \(passwordPlaces)"
                : "\(path) needs a password; give the export password, \(passwordPlaces)"
        case .unsupportedArchive(let path, let reason):
            "\(path) uses an old encryption that this OpenSSL cannot read (\(reason)); convert the file: "
                + "openssl pkcs12 -legacy -in \(path) -nodes -out push.pem"
        case .keyMismatch(let certificate, let key):
            "the private key in \(key) does not belong to the certificate in \(certificate); give the matching pair"
        case .certificateExpired(let path, let expiredAt):
            "the certificate in \(path) expired at \(expiredAt); create a new one at developer.apple.com"
        case .certificateNotYetValid(let path, let validFrom):
            "the certificate in \(path) is not valid before \(validFrom); check this machine's clock"
        default:
            ""
        }
    }
}
