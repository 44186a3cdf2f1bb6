import CCurl
import CKernel
import COpenSSL
import Foundation
import Synchronization

/// Sends requests to external web servers through libcurl: it fetches feeds and posts webhooks.
///
/// Certificates are always verified. Each request has a separate thread, so that a slow server delays nothing else.
/// Callers limit the number of simultaneous requests. Cancelling the task ends the request within about a second.
package struct HTTPClient: Sendable {
    private let limits: WebLimits
    private let trust: String?
    private let agent: String
    private let addresses: AddressPolicy

    /// - Parameters:
    ///   - addresses: the allowed addresses. Use `any` only for addresses that the operator wrote.
    ///   - trust: a CA file (PEM) in place of the system's, for the operator's own server.
    ///   - agent: the value of `User-Agent`.
    package init(
        addresses: AddressPolicy, limits: WebLimits = WebLimits(), trust: String? = nil, agent: String = "fanfare"
    ) {
        self.addresses = addresses
        self.limits = limits
        self.trust = trust
        self.agent = agent
    }

    /// The versions of libcurl and its libraries: `libcurl/7.88.1 OpenSSL/3.0.17 nghttp2/1.52.0 ...`
    package static var libraries: String { String(cString: curl_version()) }

    /// Returns the response, whatever its status. Throws if no response arrives.
    ///
    /// - Parameter most: the longest time of the request, if it is shorter than ``WebLimits/totalTime``.
    package func send(_ request: WebRequest, within most: Duration? = nil) async throws(WebError) -> WebResponse {
        var limits = limits
        if let most { limits.totalTime = min(limits.totalTime, most) }
        let transfer = Transfer(request, addresses, limits: limits, trust: trust, agent: agent)
        let result = await withTaskCancellationHandler {
            await RequestThread.run { transfer.perform() }
        } onCancel: {
            transfer.cancel()
        }
        return try result.get()
    }
}

extension HTTPClient {
    /// Returns the reason why a link does not work. `nil` if the server responds with 2xx or 3xx to HEAD, or else to
    /// GET.
    package func fault(ofLink url: String) async -> String? {
        if await fault(of: .head, url) == nil { return nil }
        return await fault(of: .get, url)
    }

    private func fault(of method: WebRequest.Method, _ url: String) async -> String? {
        do {
            let status = try await send(WebRequest(method, url)).status
            return (200..<400).contains(status) ? nil : "status \(status)"
        } catch {
            // The page exists, and is only too large to read.
            if case .tooLarge = error { return nil }
            return error.description
        }
    }
}

/// One request in progress. Call ``perform()`` once, on the request's own thread. Any thread may ``cancel()`` it.
final class Transfer: Sendable {
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private let request: WebRequest
    private let addresses: AddressPolicy
    private let limits: WebLimits
    private let trust: String?
    private let agent: String
    private let isCancelled = Atomic(false)

    init(_ request: WebRequest, _ addresses: AddressPolicy, limits: WebLimits, trust: String?, agent: String) {
        self.request = request
        self.addresses = addresses
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
        let response = ResponseCollector(
            bytesMax: limits.bodyBytesMax, isCancelled: { self.isCancelled.load(ordering: .relaxed) })
        let lines = HeaderLines(headerLines)
        let sockets = SocketGuard(addresses)
        let code = withExtendedLifetime((response, lines, sockets)) {
            let options = CurlOptions(handle, request, limits, trust, agent)
            let codes = [options.set(lines, response), sockets.attach(to: handle)]
            return codes.first { $0 != CURLE_OK } ?? curl_easy_perform(handle)
        }
        if code != CURLE_OK, let refused = sockets.refused {
            return .failure(refusal(of: refused, handle))
        }
        if let error = error(code, response, handle) { return .failure(error) }
        let status = fanfare_curl_get_long(handle, CURLINFO_RESPONSE_CODE)
        var answer = WebResponse(status: status, headers: response.headers, body: response.body)
        answer.isHTTP2 = fanfare_curl_get_long(handle, CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0)
        return .success(answer)
    }

    private var shown: String { ShownURL.text(request.url) }

    private var fault: String? {
        let scheme = request.url.prefix { $0 != ":" }.lowercased()
        guard ["http", "https"].contains(scheme), request.url.dropFirst(scheme.count).hasPrefix("://") else {
            return "not an http or https address"
        }
        // Check scalars, because Swift joins a blank and a following combining mark into one `Character`. A server
        // still reads a blank.
        if request.url.unicodeScalars.contains(where: { $0.properties.isWhitespace || $0 == "\0" }) {
            return "an address must not contain spaces"
        }
        let header = request.headers.first { "\($0)\($1)".contains { $0.isNewline || $0 == "\0" } }
        return header.map { "the header \($0.key.filter { !$0.isNewline }) contains a line break" }
    }

    private func refusal(of address: String, _ handle: UnsafeMutableRawPointer) -> WebError {
        guard fanfare_curl_get_long(handle, CURLINFO_REDIRECT_COUNT) > 0,
            let target = fanfare_curl_get_text(handle, CURLINFO_EFFECTIVE_URL)
        else { return .refusedAddress(url: shown, address: address) }
        return .refusedRedirect(url: shown, target: ShownURL.text(String(cString: target)), address: address)
    }

    private var headerLines: [String] {
        // By default, libcurl sends `Expect: 100-continue` with larger bodies, and waits for a response that many
        // servers never send. An empty `Expect:` prevents this.
        request.headers.map { "\($0): \($1)" } + (request.method.hasBody ? ["Expect:"] : [])
    }

    private func error(_ code: CURLcode, _ response: ResponseCollector, _ handle: UnsafeMutableRawPointer) -> WebError?
    {
        switch code {
        case CURLE_OK: nil
        case CURLE_ABORTED_BY_CALLBACK: .cancelled(url: shown)
        case CURLE_OPERATION_TIMEDOUT: .timedOut(url: shown, limit: limits.totalTime)
        case CURLE_TOO_MANY_REDIRECTS: .tooManyRedirects(url: shown, max: limits.redirectsMax)
        case CURLE_UNSUPPORTED_PROTOCOL: .downgraded(url: shown)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            .untrusted(url: shown, reason: reason(of: code, handle))
        case CURLE_FILESIZE_EXCEEDED,
            CURLE_WRITE_ERROR where response.isTooLarge:
            .tooLarge(url: shown, bytesMax: limits.bodyBytesMax)
        default: .failed(url: shown, reason: reason(of: code, handle))
        }
    }

    private func reason(of code: CURLcode, _ handle: UnsafeMutableRawPointer) -> String {
        let verified = fanfare_curl_get_long(handle, CURLINFO_SSL_VERIFYRESULT)
        let text = curl_easy_strerror(code).map { String(cString: $0) } ?? "curl error \(code.rawValue)"
        guard verified != 0 else { return text }
        let why = X509_verify_cert_error_string(verified).map { String(cString: $0) } ?? "result \(verified)"
        return "\(text) (OpenSSL: \(why))"
    }
}

/// The bridge between a task and a blocking request. It uses a separate thread, so that a slow server never blocks one
/// of the threads that tasks share.
enum RequestThread {
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread {
                fanfare_begin_thread("web-request")
                continuation.resume(returning: body())
            }
            .start()
        }
    }
}
