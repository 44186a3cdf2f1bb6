import FoundationEssentials

/// A provider token (JWT) whose signature was found good (`apns-protocol.md` section 3).
struct ProviderToken {
    let key: VerificationKey
    /// Seconds since 1970.
    let issuedAt: Int64
    /// Header and claims as sent: what makes two tokens the same, for a signature differs each time.
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

    /// Nil for anything that APNs answers with `InvalidProviderToken`, but for the time of `iat`.
    init?(_ text: UnsafeRawBufferPointer, keys: [String: VerificationKey], lenient: Bool) {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        guard let headerText = Base64URL.decode(parts[0], lenient: lenient),
            let claimsText = Base64URL.decode(parts[1], lenient: lenient),
            let signature = Base64URL.decode(parts[2], lenient: lenient)
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
        // What is wrong with it does not matter: every fault gets the same answer.
        do { return try JSONDecoder().decode(type, from: Data(text)) } catch { return nil }
    }
}
