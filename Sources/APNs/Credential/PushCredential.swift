/// How Fanfare proves who it is (`ProviderProtocol` section 2).
package enum PushCredential: Sendable {
    /// `authorization: bearer <jwt>` on every request.
    case token(ProviderTokenSource)
    /// TLS client certificate, PEM or PKCS#12.
    case certificate(ClientCertificate)
}

extension PushCredential {
    /// The provider token to use now; nil with a certificate.
    func token() throws(CredentialError) -> ProviderToken? {
        switch self {
        case .token(let source): try source.authorization()
        case .certificate: nil
        }
    }

    /// Learns what an answer says about the provider token of this generation (`ProviderProtocol` section 3).
    func heed(_ answer: PushAnswer, tokenGeneration: Int) {
        guard case .token(let source) = self else { return }
        if answer.reason == .expiredProviderToken { source.markExpired(tokenGeneration) }
        if answer.reason == .tooManyProviderTokenUpdates { source.holdRenewal() }
    }
}
