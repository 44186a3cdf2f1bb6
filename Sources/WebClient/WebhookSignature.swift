import COpenSSL

/// The headers by which a receiver knows that a message is ours and not an old one: those of the Standard Webhooks
/// specification (standardwebhooks.com), for which there are libraries in most languages.
package struct WebhookSignature: Sendable {
    private let secret: [UInt8]

    /// - Parameter secret: the key of the HMAC.
    package init(secret: [UInt8]) {
        self.secret = secret
    }

    /// - Parameters:
    ///   - id: the same on every attempt.
    ///   - seconds: since 1970, of this attempt; receivers refuse what is minutes old.
    package func headers(id: String, seconds: Int64, body: [UInt8]) -> [String: String] {
        let digest = Self.digest(Array("\(id).\(seconds).".utf8) + body, secret)
        return [
            "webhook-id": id, "webhook-timestamp": "\(seconds)", "webhook-signature": "v1,\(Self.base64(digest))",
        ]
    }

    /// HMAC-SHA256.
    private static func digest(_ bytes: [UInt8], _ secret: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        HMAC(EVP_sha256(), secret, Int32(secret.count), bytes, bytes.count, &digest, &count)
        return Array(digest[..<Int(count)])
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&text, bytes, Int32(bytes.count))
        return String(decoding: text[..<Int(count)], as: UTF8.self)
    }
}
