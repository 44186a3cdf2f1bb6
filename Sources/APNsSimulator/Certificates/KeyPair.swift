import COpenSSL

/// A private key on P-256. Owns the OpenSSL key.
final class KeyPair {
    let handle: OpaquePointer

    init() throws(SimulatorError) {
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { throw .fromOpenSSL() }
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        let isMade =
            EVP_PKEY_keygen_init(context) == 1
            && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
            && EVP_PKEY_keygen(context, &made) == 1
        guard isMade, let made else { throw .fromOpenSSL() }
        handle = made
    }

    deinit {
        EVP_PKEY_free(handle)
    }

    func pem() throws(SimulatorError) -> [UInt8] {
        try MemoryBIO.bytes { PEM_write_bio_PKCS8PrivateKey($0, handle, nil, nil, 0, nil, nil) == 1 }
    }
}

/// What OpenSSL writes to memory.
enum MemoryBIO {
    static func bytes(_ write: (OpaquePointer) -> Bool) throws(SimulatorError) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw .fromOpenSSL() }
        defer { BIO_free(bio) }
        guard write(bio) else { throw .fromOpenSSL() }
        let count = BIO_ctrl_pending(bio)
        var bytes = [UInt8](repeating: 0, count: count)
        guard BIO_read(bio, &bytes, Int32(count)) == Int32(count) else { throw .fromOpenSSL() }
        return bytes
    }
}

extension SimulatorError {
    static func fromOpenSSL() -> SimulatorError {
        let code = ERR_get_error()
        ERR_clear_error()
        let text = ERR_reason_error_string(code).map { String(cString: $0) }
        return .certificateNotMade(reason: text ?? "no reason given by OpenSSL")
    }
}
