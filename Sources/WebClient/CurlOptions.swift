import CCurl

/// Puts a request on an easy handle.
struct CurlOptions {
    private let handle: UnsafeMutableRawPointer
    private let request: WebRequest
    private let limits: WebLimits
    private let trust: String?
    private let agent: String

    init(
        _ handle: UnsafeMutableRawPointer, _ request: WebRequest, _ limits: WebLimits, _ trust: String?, _ agent: String
    ) {
        self.handle = handle
        self.request = request
        self.limits = limits
        self.trust = trust
        self.agent = agent
    }

    /// - Parameters:
    ///   - lines: must outlive the request, as must `answer`.
    func set(_ lines: HeaderLines, _ answer: Answer) -> CURLcode {
        let isSecure = request.url.lowercased().hasPrefix("https:")
        var codes = [
            setText(CURLOPT_URL, request.url),
            setText(CURLOPT_USERAGENT, agent),
            setText(CURLOPT_PROTOCOLS_STR, "http,https"),
            // Once https, always https.
            setText(CURLOPT_REDIR_PROTOCOLS_STR, isSecure ? "https" : "http,https"),
            set(CURLOPT_MAXREDIRS, limits.redirectsMax),
            set(CURLOPT_NOSIGNAL, 1),
            // A cancelled request must not wait for a resolver that does not answer.
            set(CURLOPT_QUICK_EXIT, 1),
            set(CURLOPT_SSL_VERIFYPEER, 1),
            set(CURLOPT_SSL_VERIFYHOST, 2),
            set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(limits.connectTime)),
            set(CURLOPT_TIMEOUT_MS, Self.milliseconds(limits.totalTime)),
            // Known in advance: not even begun. Compressed sizes are smaller; the answer counts what it gets.
            set(CURLOPT_MAXFILESIZE, limits.bodyBytesMax),
            // Everything libcurl can decompress.
            setText(CURLOPT_ACCEPT_ENCODING, ""),
            fanfare_curl_set_pointer(handle, CURLOPT_HTTPHEADER, lines.first),
        ]
        if let trust { codes.append(setText(CURLOPT_CAINFO, trust)) }
        codes += setMethod() + answer.attach(to: handle)
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func setMethod() -> [CURLcode] {
        switch request.method {
        case .get: return [set(CURLOPT_HTTPGET, 1), set(CURLOPT_FOLLOWLOCATION, 1)]
        case .post(let body):
            return [
                set(CURLOPT_POST, 1), set(CURLOPT_POSTFIELDSIZE, body.count),
                body.withUnsafeBytes { fanfare_curl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) },
            ]
        }
    }

    private static func milliseconds(_ duration: Duration) -> Int {
        max(1, Int(duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000))
    }

    private func set(_ option: CURLoption, _ value: Int) -> CURLcode {
        fanfare_curl_set_long(handle, option, value)
    }

    /// libcurl copies the text.
    private func setText(_ option: CURLoption, _ text: String) -> CURLcode {
        fanfare_curl_set_pointer(handle, option, text)
    }
}
