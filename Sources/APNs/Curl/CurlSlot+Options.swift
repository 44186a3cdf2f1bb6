import CCurl
import Glibc

/// What a new socket tells the lane. Belongs to the lane's thread.
final class SocketLog {
    /// Sockets opened so far.
    fileprivate(set) var opened = 0
    fileprivate let unacknowledgedMax: Duration

    /// - Parameter unacknowledgedMax: how long the kernel waits for an acknowledgement before it drops the connection.
    init(unacknowledgedMax: Duration) {
        self.unacknowledgedMax = unacknowledgedMax
    }
}

extension CurlSlot {
    private static let idleConnectionSeconds = 3600
    private static let keepAliveSeconds = 60

    /// Sets what all requests of a lane have in common (`ProviderProtocol` section 9).
    func setOptions(_ plan: LanePlan) -> CURLcode {
        let host = plan.endpoint.host
        let isBareV6 = host.contains(":") && !host.hasPrefix("[")
        let url = "https://\(isBareV6 ? "[\(host)]" : host):\(plan.endpoint.port)/"
        var codes = [
            setText(CURLOPT_URL, url),
            set(CURLOPT_POST, 1),
            set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            set(CURLOPT_PIPEWAIT, 1),
            set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            set(CURLOPT_NOSIGNAL, 1),
            // A stop must not wait for a resolver that does not answer.
            set(CURLOPT_QUICK_EXIT, 1),
            set(CURLOPT_CONNECTTIMEOUT_MS, max(1, plan.limits.connectDeadline.milliseconds)),
            set(CURLOPT_MAXAGE_CONN, Self.idleConnectionSeconds),
            // Each connect resolves afresh and takes another address, so that lanes spread (`ProviderProtocol` section 8).
            set(CURLOPT_DNS_CACHE_TIMEOUT, 0),
            set(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1),
            set(CURLOPT_TCP_KEEPALIVE, 1),
            set(CURLOPT_TCP_KEEPIDLE, Self.keepAliveSeconds),
            set(CURLOPT_TCP_KEEPINTVL, Self.keepAliveSeconds),
            setSocketLog(),
        ]
        if let trust = plan.trust { codes.append(setText(CURLOPT_CAINFO, trust)) }
        if case .certificate(let certificate) = plan.credential { codes += setCertificate(certificate) }
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func setCertificate(_ certificate: ClientCertificate) -> [CURLcode] {
        var codes = [
            setText(CURLOPT_SSLCERT, certificate.certificatePath),
            setText(CURLOPT_SSLCERTTYPE, certificate.form == .archive ? "P12" : "PEM"),
        ]
        if let path = certificate.privateKeyPath { codes.append(setText(CURLOPT_SSLKEY, path)) }
        if let password = certificate.password { codes.append(setText(CURLOPT_KEYPASSWD, password)) }
        return codes
    }

    private func setSocketLog() -> CURLcode {
        fanfare_curl_set_sockopt(
            handle,
            { context, socket, _ in
                guard let context else { return CURL_SOCKOPT_OK }
                let log = Unmanaged<SocketLog>.fromOpaque(context).takeUnretainedValue()
                log.opened += 1
                var milliseconds = Int32(clamping: log.unacknowledgedMax.milliseconds)
                setsockopt(socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, 4)
                return CURL_SOCKOPT_OK
            }, Unmanaged.passUnretained(sockets).toOpaque())
    }

    private func set(_ option: CURLoption, _ value: Int) -> CURLcode {
        fanfare_curl_set_long(handle, option, value)
    }

    /// libcurl copies the text.
    private func setText(_ option: CURLoption, _ text: String) -> CURLcode {
        fanfare_curl_set_pointer(handle, option, text)
    }
}
