import CCurl

/// libcurl's process-wide state; made before the first handle, kept until the process ends.
enum CurlLibrary {
    static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    static func words(for code: CURLcode) -> String {
        curl_easy_strerror(code).map { String(cString: $0) } ?? "curl error \(code.rawValue)"
    }
}
