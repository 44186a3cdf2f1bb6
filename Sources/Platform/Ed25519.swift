import COpenSSL

/// Checks Ed25519 signatures (RFC 8032), as `openssl pkeyutl -sign -rawin` creates them.
package enum Ed25519 {
    package static let keyBytes = 32
    package static let signatureBytes = 64

    /// - Parameter key: the raw public key.
    package static func isValid(_ signature: [UInt8], of message: [UInt8], by key: [UInt8]) -> Bool {
        guard signature.count == signatureBytes, key.count == keyBytes,
            let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, key, key.count)
        else { return false }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
