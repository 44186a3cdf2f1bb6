import COpenSSL
import Foundation
import Testing

/// A provider token key of the tests: made new, known to the simulator by its PEM.
final class TestKey: @unchecked Sendable {
    static let keyID = "ABC123DEFG"
    static let teamID = "DEF123GHIJ"

    enum Signature {
        case raw, der, broken
    }

    // Not changed after init.
    private let handle: OpaquePointer
    let pem: String

    init() throws {
        let context = try #require(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil))
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        try #require(EVP_PKEY_keygen_init(context) == 1)
        try #require(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1)
        try #require(EVP_PKEY_keygen(context, &made) == 1)
        handle = try #require(made)
        let bio = try #require(BIO_new(BIO_s_mem()))
        defer { BIO_free(bio) }
        try #require(PEM_write_bio_PKCS8PrivateKey(bio, handle, nil, nil, 0, nil, nil) == 1)
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        try #require(BIO_read(bio, &bytes, Int32(bytes.count)) == Int32(bytes.count))
        pem = String(decoding: bytes, as: UTF8.self)
    }

    deinit {
        EVP_PKEY_free(handle)
    }

    /// A provider token with exactly these texts as header and claims.
    func token(header: String, claims: String, signature: Signature = .raw) throws -> String {
        let signed = "\(Self.base64URL(Array(header.utf8))).\(Self.base64URL(Array(claims.utf8)))"
        var bytes = try sign(Array(signed.utf8), raw: signature != .der)
        if signature == .broken { bytes[40] ^= 1 }
        return "\(signed).\(Self.base64URL(bytes))"
    }

    func token(
        issuedAt: Int, keyID: String = TestKey.keyID, teamID: String = TestKey.teamID, signature: Signature = .raw
    ) throws -> String {
        try token(
            header: #"{"alg":"ES256","kid":"\#(keyID)"}"#, claims: #"{"iss":"\#(teamID)","iat":\#(issuedAt)}"#,
            signature: signature)
    }

    private func sign(_ message: [UInt8], raw: Bool) throws -> [UInt8] {
        let context = try #require(EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }
        try #require(EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle) == 1)
        var der = [UInt8](repeating: 0, count: 128)
        var count = der.count
        try #require(EVP_DigestSign(context, &der, &count, message, message.count) == 1)
        der.removeLast(der.count - count)
        guard raw else { return der }
        var start = der.withUnsafeBufferPointer(\.baseAddress)
        let pair = try #require(d2i_ECDSA_SIG(nil, &start, count))
        defer { ECDSA_SIG_free(pair) }
        var both = [UInt8](repeating: 0, count: 64)
        both.withUnsafeMutableBufferPointer { room in
            guard let base = room.baseAddress else { return }
            BN_bn2binpad(ECDSA_SIG_get0_r(pair), base, 32)
            BN_bn2binpad(ECDSA_SIG_get0_s(pair), base + 32, 32)
        }
        return both
    }

    static func base64URL(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }
}
