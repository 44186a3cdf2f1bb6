import COpenSSL
import Model
import Platform

/// One request to an external web server.
package struct WebRequest: Hashable, Sendable {
    package enum Method: Hashable, Sendable {
        /// Follows redirects.
        case get
        /// Follows redirects and omits the body.
        case head
        /// Does not follow redirects, so that the body is sent only to the intended address.
        case post(body: [UInt8])

        var hasBody: Bool {
            if case .post = self { true } else { false }
        }
    }

    package var method: Method
    /// `https://` or `http://`.
    package var url: String
    /// The headers. Each name occurs once. A header with a line end is refused.
    package var headers: [String: String]

    package init(_ method: Method, _ url: String, headers: [String: String] = [:]) {
        self.method = method
        self.url = url
        self.headers = headers
    }
}

/// A server's response, whatever its status.
package struct WebResponse: Hashable, Sendable {
    package var status: Int
    /// The headers with lower-case names. If a name is repeated, the last value counts. After redirects, only the
    /// headers of the last response remain.
    package var headers: [String: String]
    /// The decompressed body.
    package var body: [UInt8]
    /// Whether the response came over HTTP/2.
    package var isHTTP2 = false

    package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The limits of one request.
package struct WebLimits: Hashable, Sendable {
    /// The time from the first name look-up to the last byte.
    package var totalTime: Duration = .seconds(30)
    package var connectTime: Duration = .seconds(10)
    /// The size of the decompressed body.
    package var bodyBytesMax = 8 << 20
    package var redirectsMax = 5

    package init() {}
}

/// The reason why there is no usable response. Descriptions show an address without the parts that may be secret.
package enum WebError: Error, Hashable, Sendable {
    /// The address is not a valid `http` or `https` address, or a header contains a line end.
    case unusable(url: String, reason: String)
    case timedOut(url: String, limit: Duration)
    case tooLarge(url: String, bytesMax: Int)
    case tooManyRedirects(url: String, max: Int)
    /// A redirect from https to http, or to another scheme.
    case downgraded(url: String)
    /// The server's certificate is not trusted.
    case untrusted(url: String, reason: String)
    case failed(url: String, reason: String)
    /// The address is not an allowed address.
    case refusedAddress(url: String, address: String)
    /// The target of a redirect is not an allowed address.
    case refusedRedirect(url: String, target: String, address: String)
    /// The task was cancelled.
    case cancelled(url: String)
}

extension WebError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unusable(let url, let reason): "\(url): \(reason)"
        case .timedOut(let url, let limit): "\(url) did not respond within \(limit.components.seconds) s"
        case .tooLarge(let url, let bytesMax): "\(url) responds with more than \(bytesMax) bytes"
        case .tooManyRedirects(let url, let max): "\(url) redirects more than \(max) times"
        case .downgraded(let url): "\(url) redirects to an address that is not https; use an https address"
        case .untrusted(let url, let reason): "the certificate of \(url) is not trusted: \(reason)"
        case .failed(let url, let reason): "\(url) cannot be reached: \(reason)"
        case .refusedAddress(let url, let address):
            "\(url) resolves to \(address), which is not a public address; if this is intended, allow it under "
                + "feeds.allow in the configuration"
        case .refusedRedirect(let url, let target, let address):
            "\(url) redirects to \(target), which resolves to \(address): this is not a public address, and the "
                + "redirect is not followed; use an address without this redirect"
        case .cancelled(let url): "the request to \(url) was cancelled"
        }
    }
}

/// Shortens addresses for display and logs: removes user, password, query and fragment, which may contain keys.
package enum ShownURL {
    package static func text(_ url: String) -> String {
        let plain = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = plain.place(of: "://") else { return String(plain.prefix(200)) }
        let rest = plain[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard let (_, host) = authority.splitAtLastSign("@") else { return String(plain.prefix(200)) }
        return String("\(plain[..<scheme.upperBound])\(host)\(rest[authority.endIndex...])".prefix(200))
    }
}

/// The headers that prove to a receiver that a message is from Fanfare and recent. They follow the Standard Webhooks
/// specification (standardwebhooks.com), for which libraries exist in most languages.
package struct WebhookSignature: Sendable {
    private let secret: [UInt8]

    /// - Parameter secret: the key of the HMAC.
    package init(secret: [UInt8]) {
        self.secret = secret
    }

    /// - Parameters:
    ///   - id: the message's id, the same on every attempt.
    ///   - seconds: the time of this attempt, in seconds since 1970. Receivers refuse messages that are minutes old.
    package func headers(id: String, seconds: Int64, body: [UInt8]) -> [String: String] {
        let digest = Digest.hmacSHA256(Array("\(id).\(seconds).".utf8) + body, secret: secret)
        return [
            "webhook-id": id, "webhook-timestamp": "\(seconds)", "webhook-signature": "v1,\(Self.base64(digest))",
        ]
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = EVP_EncodeBlock(&text, bytes, Int32(bytes.count))
        return String(decoding: text[..<Int(count)], as: UTF8.self)
    }
}
