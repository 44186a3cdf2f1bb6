import COpenSSL
import Platform

/// An EC P-256 private key that signs provider tokens (`ProviderProtocol` section 3).
///
/// `@unchecked Sendable`: `EVP_PKEY` does not change after loading. Each signature uses a separate context, which
/// OpenSSL allows from several threads at the same time.
package final class SigningKey: @unchecked Sendable {
    /// The size of r and s together, 32 bytes each.
    static let signatureBytes = 64

    /// Whether the file's mode lets users other than the owner and the group read it. False for a key given as text.
    package let isReadableByOthers: Bool
    private let key: OpaquePointer

    /// Loads `AuthKey_<KeyID>.p8`, or any unencrypted PEM with an EC P-256 private key.
    package convenience init(path: String) throws(CredentialError) {
        let file = try CredentialFile(path: path)
        try self.init(PEMText(bytes: file.bytes), origin: path, isReadableByOthers: file.isReadableByOthers)
    }

    package convenience init(pem: String) throws(CredentialError) {
        try self.init(PEMText(bytes: Array(pem.utf8)), origin: "the key", isReadableByOthers: false)
    }

    private init(_ pem: PEMText, origin: String, isReadableByOthers: Bool) throws(CredentialError) {
        let key = try pem.privateKey(origin: origin)
        let kind = Self.kind(of: key)
        guard kind == "EC prime256v1" else {
            EVP_PKEY_free(key)
            throw .wrongKeyKind(origin: origin, kind: "a private key of kind \(kind)")
        }
        self.key = key
        self.isReadableByOthers = isReadableByOthers
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// Returns the SHA-256 of the public key (SubjectPublicKeyInfo), in hex. Name and format of the key's file do not
    /// affect it.
    package func fingerprint() throws(CredentialError) -> String {
        ERR_clear_error()
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &bytes)
        guard count > 0, let bytes else { throw .signingFailed(reason: OpenSSLFault.last) }
        defer { CRYPTO_free(bytes, #file, #line) }
        return Digest.sha256Hex(Array(UnsafeBufferPointer(start: bytes, count: Int(count))))
    }

    /// Returns ECDSA over SHA-256, as raw r||s: 64 bytes, each half big-endian and padded with zeros on the left.
    package func signature(over message: [UInt8]) throws(CredentialError) -> [UInt8] {
        let der = try derSignature(over: message)
        let parsed = der.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &position, bytes.count)
        }
        guard let parsed else { throw .signingFailed(reason: OpenSSLFault.last) }
        defer { ECDSA_SIG_free(parsed) }
        let half = Int32(Self.signatureBytes / 2)
        var raw = [UInt8](repeating: 0, count: Self.signatureBytes)
        let isWritten = raw.withUnsafeMutableBufferPointer { raw in
            BN_bn2binpad(ECDSA_SIG_get0_r(parsed), raw.baseAddress, half) == half
                && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), raw.baseAddress.map { $0 + Int(half) }, half) == half
        }
        guard isWritten else { throw .signingFailed(reason: OpenSSLFault.last) }
        return raw
    }

    private func derSignature(over message: [UInt8]) throws(CredentialError) -> [UInt8] {
        ERR_clear_error()
        guard let context = EVP_MD_CTX_new() else { throw .signingFailed(reason: OpenSSLFault.last) }
        defer { EVP_MD_CTX_free(context) }
        var size = Int(EVP_PKEY_get_size(key))
        var der = [UInt8](repeating: 0, count: size)
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &der, &size, message, message.count) == 1
        else { throw .signingFailed(reason: OpenSSLFault.last) }
        return Array(der.prefix(size))
    }

    /// Returns the key's kind, such as `RSA`, `ED25519`, or `EC` with its curve.
    private static func kind(of key: OpaquePointer) -> String {
        let name = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
        guard name == "EC" else { return name }
        var curve = [CChar](repeating: 0, count: 64)
        guard EVP_PKEY_get_group_name(key, &curve, curve.count, nil) == 1 else { return "EC on an unnamed curve" }
        return "EC " + String(decoding: curve.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension SigningKey {
    /// Returns a new key of Apple's kind as the text of a `.p8` file, for rehearsals against the simulator.
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
