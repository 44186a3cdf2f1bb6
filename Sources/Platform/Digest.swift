import COpenSSL

/// SHA-256 hashes and message authentication codes, computed by OpenSSL.
package enum Digest {
    package static let sha256Bytes = Int(SHA256_DIGEST_LENGTH)

    package static func sha256(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { sha256($0) } }

    package static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: sha256Bytes)
        SHA256(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &digest)
        return digest
    }

    /// Returns the SHA-256 in hex, as `sha256sum` prints it.
    package static func sha256Hex(_ bytes: [UInt8]) -> String { Hex.text(sha256(bytes)) }

    /// Returns the SHA-256 of bytes that are too many for memory. Returns `nil` if OpenSSL has no memory left.
    ///
    /// - Parameter feed: calls its argument with each part of the bytes, in order.
    package static func sha256(
        feeding feed: (_ add: (UnsafeRawBufferPointer) -> Void) throws -> Void
    ) rethrows -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var isGood = EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1
        try feed { part in isGood = isGood && EVP_DigestUpdate(context, part.baseAddress, part.count) == 1 }
        var digest = [UInt8](repeating: 0, count: sha256Bytes)
        return isGood && EVP_DigestFinal_ex(context, &digest, nil) == 1 ? digest : nil
    }

    /// Returns the HMAC-SHA256 (RFC 2104).
    package static func hmacSHA256(_ bytes: [UInt8], secret: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: sha256Bytes)
        var count: UInt32 = 0
        HMAC(EVP_sha256(), secret, Int32(secret.count), bytes, bytes.count, &digest, &count)
        return digest
    }
}
