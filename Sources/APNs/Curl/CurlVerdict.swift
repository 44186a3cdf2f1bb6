import CCurl

/// The end of a request, after the tables in `ProviderProtocol` sections 8 and 9.
enum CurlVerdict {
    case answered(PushResponse, latencyMicroseconds: Int64)
    /// The response has a status other than 200 and is incomplete.
    case cutOff(status: Int)
    /// The request was written, or may have been, and no response came in time.
    case missedDeadline
    /// The request was written, or may have been, and the connection or its stream ended.
    case lost(String)
    /// The response is not HTTP/2, so another party sent it, such as a proxy. APNs may have received the push.
    case notHTTP2
    /// The request was certainly not written: it waited for a stream until its deadline.
    case neverStarted
    /// The request was certainly not written: there is no connection.
    case notConnected(TransportError, isFinal: Bool)

    /// Determines the end of a slot's request that is done or has missed its deadline. `isProven` tells whether the
    /// newest socket has received a response before.
    init(_ code: CURLcode, _ slot: CurlSlot, plan: LanePlan, isProven: Bool) {
        let status = fanfare_curl_get_long(slot.handle, CURLINFO_RESPONSE_CODE)
        // A 200 is complete with its headers, even if the stream then failed (`ProviderProtocol` section 12, trap 32).
        // Any other status needs the whole response.
        if status >= 200 {
            self = Self.answer(status, slot, isProven, isWhole: code == CURLE_OK)
        } else if slot.isWritten {
            self = Self.unanswered(code, slot)
        } else if code == CURLE_OPERATION_TIMEDOUT, isProven {
            self = .neverStarted
        } else {
            self = Self.notConnected(code, slot.summary(for: code), plan)
        }
    }

    private static func unanswered(_ code: CURLcode, _ slot: CurlSlot) -> CurlVerdict {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: .missedDeadline
        case CURLE_ABORTED_BY_CALLBACK: .lost("the connection closed before the response")
        default: .lost(slot.summary(for: code))
        }
    }

    private static func answer(_ status: Int, _ slot: CurlSlot, _ isProven: Bool, isWhole: Bool) -> CurlVerdict {
        if !isProven, !slot.isHTTP2 { return .notHTTP2 }
        guard isWhole || status == 200 else { return .cutOff(status: status) }
        let latency =
            fanfare_curl_get_offset(slot.handle, CURLINFO_TOTAL_TIME_T)
            - fanfare_curl_get_offset(slot.handle, CURLINFO_PRETRANSFER_TIME_T)
        let response =
            status == 200
            ? PushResponse(status: 200)
            : PushResponse(status: status, body: slot.answer, retryAfter: slot.header("retry-after"))
        return .answered(response, latencyMicroseconds: max(0, Int64(latency)))
    }

    private static func notConnected(_ code: CURLcode, _ summary: String, _ plan: LanePlan) -> CurlVerdict {
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
            .notConnected(.untrusted(plan.endpoint, reason: summary), isFinal: true)
        case CURLE_SSL_CERTPROBLEM:
            .notConnected(.credentialUnusable("the client certificate cannot be used: \(summary)"), isFinal: true)
        case CURLE_SSL_CONNECT_ERROR:
            .notConnected(.untrusted(plan.endpoint, reason: summary), isFinal: false)
        default:
            .notConnected(.unreachable(plan.endpoint, reason: summary), isFinal: false)
        }
    }
}

/// libcurl's process-wide state. It is created before the first handle and kept until the process ends.
enum CurlLibrary {
    static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    static func summary(for code: CURLcode) -> String {
        curl_easy_strerror(code).map { String(cString: $0) } ?? "curl error \(code.rawValue)"
    }
}
