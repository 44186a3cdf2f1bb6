import CCurl
import Synchronization

/// One request on its way. ``perform()`` is called once, on the request's own thread; any thread may ``cancel()``.
final class Transfer: Sendable {
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private let request: WebRequest
    private let limits: WebLimits
    private let trust: String?
    private let agent: String
    private let isCancelled = Atomic(false)

    init(_ request: WebRequest, limits: WebLimits, trust: String?, agent: String) {
        self.request = request
        self.limits = limits
        self.trust = trust
        self.agent = agent
    }

    func cancel() {
        isCancelled.store(true, ordering: .relaxed)
    }

    func perform() -> Result<WebResponse, WebError> {
        if let fault { return .failure(.unusable(url: shown, reason: fault)) }
        guard Self.isReady, let handle = curl_easy_init() else {
            return .failure(.failed(url: shown, reason: "libcurl cannot be started"))
        }
        defer { curl_easy_cleanup(handle) }
        let answer = Answer(bytesMax: limits.bodyBytesMax, isCancelled: { self.isCancelled.load(ordering: .relaxed) })
        let lines = HeaderLines(headerLines)
        let code = withExtendedLifetime((answer, lines)) {
            let options = CurlOptions(handle, request, limits, trust, agent)
            let code = options.set(lines, answer)
            return code == CURLE_OK ? curl_easy_perform(handle) : code
        }
        if let error = error(code, answer, handle) { return .failure(error) }
        let status = fanfare_curl_get_long(handle, CURLINFO_RESPONSE_CODE)
        return .success(WebResponse(status: status, headers: answer.headers, body: answer.body))
    }

    private var shown: String { ShownURL.text(request.url) }

    private var fault: String? {
        let scheme = request.url.prefix { $0 != ":" }.lowercased()
        guard ["http", "https"].contains(scheme), request.url.dropFirst(scheme.count).hasPrefix("://") else {
            return "not an http or https address"
        }
        if request.url.contains(where: { $0.isWhitespace || $0 == "\0" }) { return "an address holds no blanks" }
        let header = request.headers.first { "\($0)\($1)".contains { $0.isNewline || $0 == "\0" } }
        return header.map { "the header \($0.key.filter { !$0.isNewline }) holds a line end" }
    }

    private var headerLines: [String] {
        // libcurl sends `Expect: 100-continue` with larger bodies, and waits for an answer many servers never give.
        request.headers.map { "\($0): \($1)" } + (request.method == .get ? [] : ["Expect:"])
    }

    private func error(_ code: CURLcode, _ answer: Answer, _ handle: UnsafeMutableRawPointer) -> WebError? {
        switch code {
        case CURLE_OK: nil
        case CURLE_ABORTED_BY_CALLBACK: .cancelled(url: shown)
        case CURLE_OPERATION_TIMEDOUT: .timedOut(url: shown, limit: limits.totalTime)
        case CURLE_TOO_MANY_REDIRECTS: .tooManyRedirects(url: shown, max: limits.redirectsMax)
        case CURLE_UNSUPPORTED_PROTOCOL: .downgraded(url: shown)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            .untrusted(url: shown, reason: words(code, handle))
        case CURLE_FILESIZE_EXCEEDED,
            CURLE_WRITE_ERROR where answer.isTooLarge:
            .tooLarge(url: shown, bytesMax: limits.bodyBytesMax)
        default: .failed(url: shown, reason: words(code, handle))
        }
    }

    private func words(_ code: CURLcode, _ handle: UnsafeMutableRawPointer) -> String {
        let verified = fanfare_curl_get_long(handle, CURLINFO_SSL_VERIFYRESULT)
        let words = curl_easy_strerror(code).map { String(cString: $0) } ?? "curl error \(code.rawValue)"
        return verified == 0 ? words : "\(words) (OpenSSL verify result \(verified))"
    }
}
