import Crypto
import FoundationEssentials
import SwiftASN1
import X509

/// A provider token (JWT) whose signature was found good (`ProviderProtocol` section 3).
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

/// The public half of a provider token key.
final class VerificationKey: Sendable {
    let key: SimulatorKey
    private let publicKey: P256.Signing.PublicKey

    init(_ key: SimulatorKey) throws(SimulatorError) {
        self.key = key
        guard let found = Self.read(key.pem) else {
            throw .unusableKey(keyID: key.keyID, reason: "it is no key in PEM")
        }
        guard let publicKey = P256.Signing.PublicKey(found) else {
            throw .unusableKey(keyID: key.keyID, reason: "it is not on the curve P-256")
        }
        self.publicKey = publicKey
    }

    /// ES256: SHA-256 and ECDSA. `signature` is r and s, 32 bytes each.
    func verifies(_ message: [UInt8], rawSignature: [UInt8]) -> Bool {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: rawSignature) else { return false }
        return publicKey.isValidSignature(signature, for: message)
    }

    func verifies(_ message: [UInt8], derSignature: [UInt8]) -> Bool {
        guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: derSignature) else { return false }
        return publicKey.isValidSignature(signature, for: message)
    }

    /// Of a private key the public half.
    private static func read(_ pem: String) -> Certificate.PublicKey? {
        (try? Certificate.PrivateKey(pemEncoded: pem))?.publicKey ?? (try? Certificate.PublicKey(pemEncoded: pem))
    }
}

/// Base64 as JWTs use it (RFC 7515 section 2): `-` and `_`, no padding.
enum Base64URL {
    /// Nil for any other character. Lenient: padding and the plain alphabet (`+`, `/`) pass too.
    static func decode(_ text: some Sequence<UInt8>, lenient: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        var characters = 0
        var isPadded = false
        for character in text {
            if lenient, character == UInt8(ascii: "=") {
                isPadded = true
                continue
            }
            guard !isPadded, let value = value(of: character, lenient: lenient) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            characters += 1
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return characters % 4 == 1 ? nil : bytes
    }

    private static func value(of character: UInt8, lenient: Bool) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        case UInt8(ascii: "+") where lenient: 62
        case UInt8(ascii: "/") where lenient: 63
        default: nil
        }
    }
}
