import COpenSSL

/// The public half of a provider token key. Owns the OpenSSL key.
///
/// `@unchecked Sendable`: the handle is not changed after `init`; verifying with a key from several threads is safe.
final class VerificationKey: @unchecked Sendable {
    static let signatureBytes = 64

    let key: SimulatorKey
    private let handle: OpaquePointer

    init(_ key: SimulatorKey) throws(SimulatorError) {
        self.key = key
        guard let handle = Self.read(Array(key.pem.utf8)) else {
            throw .unusableKey(keyID: key.keyID, reason: "it is no key in PEM")
        }
        self.handle = handle
        guard EVP_PKEY_get_base_id(handle) == EVP_PKEY_EC, EVP_PKEY_get_bits(handle) == 256 else {
            throw .unusableKey(keyID: key.keyID, reason: "it is not on the curve P-256")
        }
    }

    deinit {
        EVP_PKEY_free(handle)
    }

    /// ES256: SHA-256 and ECDSA. `signature` is r and s, 32 bytes each.
    func verifies(_ message: [UInt8], rawSignature: [UInt8]) -> Bool {
        guard rawSignature.count == Self.signatureBytes, let pair = ECDSA_SIG_new() else { return false }
        defer { ECDSA_SIG_free(pair) }
        let numbers = rawSignature.withUnsafeBufferPointer { bytes in
            (BN_bin2bn(bytes.baseAddress, 32, nil), BN_bin2bn(bytes.baseAddress.map { $0 + 32 }, 32, nil))
        }
        // Takes both numbers over.
        guard ECDSA_SIG_set0(pair, numbers.0, numbers.1) == 1 else { return false }
        var der: UnsafeMutablePointer<UInt8>?
        let length = i2d_ECDSA_SIG(pair, &der)
        guard length > 0, let der else { return false }
        defer { CRYPTO_free(der, #file, #line) }
        return verifies(message, derSignature: Array(UnsafeBufferPointer(start: der, count: Int(length))))
    }

    func verifies(_ message: [UInt8], derSignature: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, handle) == 1 else { return false }
        return EVP_DigestVerify(context, derSignature, derSignature.count, message, message.count) == 1
    }

    private static func read(_ pem: [UInt8]) -> OpaquePointer? {
        defer { ERR_clear_error() }
        // OpenSSL reads from where the bytes are: they must stay there until it is done.
        return pem.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            if let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil) { return key }
            BIO_ctrl(bio, BIO_CTRL_RESET, 0, nil)
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
    }
}
