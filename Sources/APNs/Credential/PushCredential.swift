/// How Fanfare proves who it is (`apns-protocol.md` section 2).
package enum PushCredential: Sendable {
    /// `authorization: bearer <jwt>` on every request.
    case token(ProviderTokenSource)
    /// TLS client certificate, PEM or PKCS#12.
    case certificate(ClientCertificate)
}
