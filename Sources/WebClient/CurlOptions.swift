import CCurl

/// Sets up a request on an easy handle.
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
    ///   - lines: the header lines. They must outlive the request, and so must `response`.
    func set(_ lines: HeaderLines, _ response: ResponseCollector) -> CURLcode {
        let isSecure = request.url.lowercased().hasPrefix("https:")
        var codes = [
            setText(CURLOPT_URL, request.url),
            setText(CURLOPT_USERAGENT, agent),
            setText(CURLOPT_PROTOCOLS_STR, "http,https"),
            // An https request may only be redirected to https.
            setText(CURLOPT_REDIR_PROTOCOLS_STR, isSecure ? "https" : "http,https"),
            set(CURLOPT_MAXREDIRS, limits.redirectsMax),
            set(CURLOPT_NOSIGNAL, 1),
            // A cancelled request must not wait for a resolver that does not respond.
            set(CURLOPT_QUICK_EXIT, 1),
            set(CURLOPT_SSL_VERIFYPEER, 1),
            set(CURLOPT_SSL_VERIFYHOST, 2),
            set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(limits.connectTime)),
            set(CURLOPT_TIMEOUT_MS, Self.milliseconds(limits.totalTime)),
            // libcurl reads no response whose declared size is too large. A compressed response declares a smaller
            // size, so the collector counts the decompressed bytes.
            set(CURLOPT_MAXFILESIZE, limits.bodyBytesMax),
            // Accept every compression that libcurl supports.
            setText(CURLOPT_ACCEPT_ENCODING, ""),
            fanfare_curl_set_pointer(handle, CURLOPT_HTTPHEADER, lines.first),
        ]
        if let trust { codes.append(setText(CURLOPT_CAINFO, trust)) }
        codes += setMethod() + response.attach(to: handle)
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func setMethod() -> [CURLcode] {
        switch request.method {
        case .head: return [set(CURLOPT_NOBODY, 1), set(CURLOPT_FOLLOWLOCATION, 1)]
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

    /// Sets an option to a text, which libcurl copies.
    private func setText(_ option: CURLoption, _ text: String) -> CURLcode {
        fanfare_curl_set_pointer(handle, option, text)
    }
}

/// libcurl's linked list of header lines. It must outlive the request that uses it.
final class HeaderLines {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        for line in lines {
            // If memory has run out, the result is `nil`, and the list lacks this line.
            if let list = curl_slist_append(first, line) { first = list }
        }
    }

    deinit {
        curl_slist_free_all(first)
    }
}

/// Collects a response within the limits. Only the request's thread uses this object. libcurl holds an unretained
/// reference to it during the request.
final class ResponseCollector {
    private let bytesMax: Int
    private let isCancelled: () -> Bool
    private(set) var headers: [String: String] = [:]
    private(set) var body: [UInt8] = []
    private(set) var isTooLarge = false

    init(bytesMax: Int, isCancelled: @escaping () -> Bool) {
        self.bytesMax = bytesMax
        self.isCancelled = isCancelled
    }

    /// Appends bytes to the body. Returns false if the body becomes too large.
    fileprivate func append(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard body.count + bytes.count <= bytesMax else {
            isTooLarge = true
            return false
        }
        body.append(contentsOf: bytes)
        return true
    }

    /// Reads a header line. After a redirect or a response with status 100, another status line begins a new
    /// response.
    fileprivate func take(header line: String) {
        if line.hasPrefix("HTTP/") {
            headers = [:]
            body = []
        }
        let bytes = line.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return }
        let value = bytes[colon...].dropFirst().drop { $0 == 0x20 || $0 == 0x09 }.prefix { $0 != 0x0A && $0 != 0x0D }
        headers[line[..<colon].lowercased()] = String(decoding: value, as: UTF8.self)
    }

    /// Makes libcurl call this object, which must outlive the request.
    func attach(to handle: UnsafeMutableRawPointer) -> [CURLcode] {
        let context = Unmanaged.passUnretained(self).toOpaque()
        return [
            fanfare_curl_set_write(
                handle,
                { bytes, size, count, context in ResponseCollector.given(bytes, size * count, context) { $0.append($1) }
                },
                context),
            fanfare_curl_set_header(
                handle,
                { bytes, size, count, context in
                    ResponseCollector.given(bytes, size * count, context) {
                        $0.take(header: String(decoding: $1, as: UTF8.self))
                        return true
                    }
                }, context),
            fanfare_curl_set_progress(
                handle,
                { context, _, _, _, _ in
                    guard let context else { return 0 }
                    return Unmanaged<ResponseCollector>.fromOpaque(context).takeUnretainedValue().isCancelled() ? 1 : 0
                }, context),
        ]
    }

    /// Passes bytes to the collector. A result below `count` makes libcurl end the request.
    private static func given(
        _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int, _ context: UnsafeMutableRawPointer?,
        _ body: (ResponseCollector, UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Int {
        guard let bytes, let context else { return 0 }
        let response = Unmanaged<ResponseCollector>.fromOpaque(context).takeUnretainedValue()
        let isTaken = bytes.withMemoryRebound(to: UInt8.self, capacity: count) {
            body(response, UnsafeBufferPointer(start: $0, count: count))
        }
        return isTaken ? count : 0
    }
}
