import COpenSSL
import FoundationEssentials
import Platform

/// A provider token (JWT) with a verified signature (`ProviderProtocol` section 3).
struct ProviderToken {
    let key: VerificationKey
    /// Seconds since 1970.
    let issuedAt: Int64
    /// Header and claims as sent. They identify a token, because its signature differs each time.
    let signedPart: [UInt8]

    private struct Header: Decodable {
        var alg: String
        var kid: String
    }

    private struct Claims: Decodable {
        var iss: String
        var iat: Int64
    }

    private struct LenientClaims: Decodable {
        var iss: String
        var iat: String
    }

    /// Returns `nil` for every fault to which APNs responds with `InvalidProviderToken`, except for a wrong time in
    /// `iat`, which is checked later.
    init?(_ text: UnsafeRawBufferPointer, keys: [String: VerificationKey], lenient: Bool) {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        guard let headerText = Base64URL.decode(Array(parts[0]), lenient: lenient),
            let claimsText = Base64URL.decode(Array(parts[1]), lenient: lenient),
            let signature = Base64URL.decode(Array(parts[2]), lenient: lenient)
        else { return nil }
        guard let header = Self.decode(Header.self, headerText), header.alg == "ES256" else { return nil }
        guard let claims = Self.claims(claimsText, lenient: lenient), let key = keys[header.kid] else { return nil }
        guard claims.iss == key.key.teamID else { return nil }
        self.key = key
        issuedAt = claims.iat
        signedPart = Array(text.prefix(parts[0].count + 1 + parts[1].count))
        if key.verifies(signedPart, rawSignature: signature) { return }
        guard lenient, key.verifies(signedPart, derSignature: signature) else { return nil }
    }

    private static func claims(_ text: [UInt8], lenient: Bool) -> Claims? {
        if let claims = decode(Claims.self, text) { return claims }
        guard lenient, let claims = decode(LenientClaims.self, text), let issued = Int64(claims.iat) else { return nil }
        return Claims(iss: claims.iss, iat: issued)
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ text: [UInt8]) -> Value? {
        // Drop the error, because every fault gets the same response.
        do { return try JSONDecoder().decode(type, from: Data(text)) } catch { return nil }
    }
}

/// The public half of a provider token key. It owns the OpenSSL key.
///
/// `@unchecked Sendable`: the handle does not change after `init`. Verifying with a key from several threads is safe.
final class VerificationKey: @unchecked Sendable {
    static let signatureBytes = 64

    let key: SimulatorKey
    private let handle: OpaquePointer

    init(_ key: SimulatorKey) throws(SimulatorError) {
        self.key = key
        guard let handle = Self.read(Array(key.pem.utf8)) else {
            throw .unusableKey(keyID: key.keyID, reason: "it is not a PEM key")
        }
        self.handle = handle
        guard EVP_PKEY_get_base_id(handle) == EVP_PKEY_EC, EVP_PKEY_get_bits(handle) == 256 else {
            throw .unusableKey(keyID: key.keyID, reason: "it is not on the curve P-256")
        }
    }

    deinit {
        EVP_PKEY_free(handle)
    }

    /// Verifies ES256: SHA-256 and ECDSA. `signature` is r and s, 32 bytes each.
    func verifies(_ message: [UInt8], rawSignature: [UInt8]) -> Bool {
        guard rawSignature.count == Self.signatureBytes, let pair = ECDSA_SIG_new() else { return false }
        defer { ECDSA_SIG_free(pair) }
        let numbers = rawSignature.withUnsafeBufferPointer { bytes in
            (BN_bin2bn(bytes.baseAddress, 32, nil), BN_bin2bn(bytes.baseAddress.map { $0 + 32 }, 32, nil))
        }
        // The call takes over both numbers.
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
        // OpenSSL reads the bytes in place, so they must stay there until it is done.
        return pem.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            if let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil) { return key }
            BIO_ctrl(bio, BIO_CTRL_RESET, 0, nil)
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
    }
}

/// The provider tokens of one connection: the verified tokens, the bound key, and the number of changes.
struct TokenSession {
    private struct Seen {
        var text: [UInt8]
        var token: ProviderToken
        var firstUsedMs: Int64
    }

    private static let lifetimeSeconds: Int64 = 3600
    private static let updateIntervalSeconds: Int64 = 20 * 60
    private static let seenMax = 32

    private var seen: [Seen] = []
    private var current = 0

    /// The key of the verified token that the connection used last. `nil` if it used none.
    var key: VerificationKey? { seen.isEmpty ? nil : seen[current].token.key }

    /// Returns the reason why APNs rejects this `authorization`. `nil` if APNs accepts it. A token is verified once per
    /// connection, and then recognised by its bytes.
    mutating func refusal(
        of authorization: UnsafeRawBufferPointer?, policy: SimulatorPolicy, environment: SimulatorEnvironment,
        nowMs: Int64
    ) -> SimulatorReason? {
        guard let text = bearer(authorization, lenient: policy.isLenientWithTokens) else {
            return .missingProviderToken
        }
        if let index = index(of: text) {
            current = index
            return fault(in: seen[index].token, policy, nowMs)
        }
        guard let token = ProviderToken(text, keys: policy.keys, lenient: policy.isLenientWithTokens) else {
            return .invalidProviderToken
        }
        guard token.key.key.environments.contains(environment) else { return .badEnvironmentKeyIdInToken }
        if let first = seen.first {
            guard first.token.key.key.teamID == token.key.key.teamID else { return .invalidProviderToken }
            guard first.token.key === token.key else { return .unrelatedKeyIdInToken }
        }
        if let fault = fault(in: token, policy, nowMs) { return fault }
        guard updates(with: token, nowMs) <= policy.tokenUpdatesTolerated else { return .tooManyProviderTokenUpdates }
        if seen.count == Self.seenMax { seen.remove(at: 1) }
        seen.append(Seen(text: Array(text), token: token, firstUsedMs: nowMs))
        current = seen.count - 1
        return nil
    }

    private func fault(in token: ProviderToken, _ policy: SimulatorPolicy, _ nowMs: Int64) -> SimulatorReason? {
        let now = nowMs / 1000
        if token.issuedAt > now + Int64(policy.tokenClockSkewSeconds) { return .invalidProviderToken }
        return token.issuedAt < now - Self.lifetimeSeconds ? .expiredProviderToken : nil
    }

    /// Returns the number of other tokens that this connection first used in the last 20 minutes. It counts only
    /// tokens whose `iat` is less than 20 minutes from that of `token`. A new connection may therefore start with a
    /// token that is 45 minutes old, and renew it soon after.
    private func updates(with token: ProviderToken, _ nowMs: Int64) -> Int {
        seen.count { other in
            other.token.signedPart != token.signedPart
                && nowMs - other.firstUsedMs < Self.updateIntervalSeconds * 1000
                && abs(token.issuedAt - other.token.issuedAt) < Self.updateIntervalSeconds
        }
    }

    private func index(of text: UnsafeRawBufferPointer) -> Int? {
        if !seen.isEmpty, text.isEqual(to: seen[current].text) { return current }
        return seen.firstIndex { text.isEqual(to: $0.text) }
    }

    private func bearer(_ authorization: UnsafeRawBufferPointer?, lenient: Bool) -> UnsafeRawBufferPointer? {
        guard let authorization, authorization.count > Self.scheme.count else { return nil }
        let isBearer = authorization.hasPrefix(Self.scheme) || lenient && authorization.hasPrefix(Self.capitalScheme)
        return isBearer ? UnsafeRawBufferPointer(rebasing: authorization[Self.scheme.count...]) : nil
    }

    private static let scheme = Array("bearer ".utf8)
    private static let capitalScheme = Array("Bearer ".utf8)
}
