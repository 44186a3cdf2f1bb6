/// One request to somebody's web server.
package struct WebRequest: Hashable, Sendable {
    package enum Method: Hashable, Sendable {
        /// Follows redirects.
        case get
        /// Does not: what was meant for one address is not given to another.
        case post(body: [UInt8])
    }

    package var method: Method
    /// `https://` or `http://`.
    package var url: String
    /// A name may stand once; line ends are refused.
    package var headers: [String: String]

    package init(_ method: Method, _ url: String, headers: [String: String] = [:]) {
        self.method = method
        self.url = url
        self.headers = headers
    }
}

/// What a server answered, whatever its status.
package struct WebResponse: Hashable, Sendable {
    package var status: Int
    /// Names in lower case; of several with one name the last. Those of the last answer when redirects were followed.
    package var headers: [String: String]
    /// Decompressed.
    package var body: [UInt8]

    package init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// Bounds of one request.
package struct WebLimits: Hashable, Sendable {
    /// From the first name look-up to the last byte.
    package var totalTime: Duration = .seconds(30)
    package var connectTime: Duration = .seconds(10)
    /// Of the body, decompressed.
    package var bodyBytesMax = 8 << 20
    package var redirectsMax = 5

    package init() {}
}
