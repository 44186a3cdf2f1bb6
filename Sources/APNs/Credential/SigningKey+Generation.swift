import COpenSSL

extension SigningKey {
    /// A new key of the kind Apple hands out, as the text of a `.p8` file: for rehearsals against the simulator.
    package static func generatedPEM() throws(CredentialError) -> String {
        ERR_clear_error()
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw .signingFailed(reason: OpenSSLFault.last)
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw .signingFailed(reason: OpenSSLFault.last) }
        defer { EVP_PKEY_free(key) }
        return try pem(of: key)
    }

    private static func pem(of key: OpaquePointer) throws(CredentialError) -> String {
        guard let memory = BIO_new(BIO_s_mem()) else { throw .signingFailed(reason: OpenSSLFault.last) }
        defer { BIO_free(memory) }
        guard PEM_write_bio_PKCS8PrivateKey(memory, key, nil, nil, 0, nil, nil) == 1 else {
            throw .signingFailed(reason: OpenSSLFault.last)
        }
        var text = [UInt8](repeating: 0, count: 1024)
        let count = BIO_read(memory, &text, Int32(text.count))
        return String(decoding: text.prefix(Int(max(0, count))), as: UTF8.self)
    }
}
