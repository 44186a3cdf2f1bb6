import CCurl
import Platform

/// The buffers for one request at a time: an easy handle with options set once, and the memory that it points to. Only
/// contents change between requests.
///
/// Only the lane's thread may use it. libcurl holds pointers into the slot during a request.
final class CurlSlot: RequestSlot {
    private static let errorBytes = Int(CURL_ERROR_SIZE)
    /// The maximum number of kept bytes of an error response. APNs sends a short JSON object.
    private static let answerBytesMax = 4096
    private static let idPrefix: StaticString = "apns-id: "

    let handle: UnsafeMutableRawPointer
    /// The index in the connection's list.
    var index = 0
    private var chain: HeaderChain?
    private(set) var connection: CurlConnection?
    /// ``CurlConnection/socketsOpened`` at the time when libcurl wrote the request. 0 if not yet written.
    private(set) var writtenOn = 0
    /// Whether the request was held back, because it was not allowed to start.
    private(set) var isHeldBack = false
    /// The limit for the socket that libcurl opens for this request.
    var unacknowledgedMaxMs: Int32 = 0
    /// The received part of the response's body.
    private(set) var answer: [UInt8] = []

    private let idNode: UnsafeMutablePointer<curl_slist>
    private let idLine: UnsafeMutableRawBufferPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var path: UnsafeMutableRawBufferPointer
    private var body: UnsafeMutableRawBufferPointer

    /// Returns `nil` if libcurl has no memory.
    init?(slot number: Int) {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        let prefix = Self.idPrefix.utf8CodeUnitCount
        idLine = .allocate(byteCount: prefix + PushID.textCount + 1, alignment: 1)
        idLine.initializeMemory(as: UInt8.self, repeating: 0)
        Self.idPrefix.withUTF8Buffer { [idLine] in idLine.copyMemory(from: UnsafeRawBufferPointer($0)) }
        idNode = .allocate(capacity: 1)
        idNode.initialize(to: curl_slist(data: idLine.baseAddress?.assumingMemoryBound(to: CChar.self), next: nil))
        errorText = .allocate(capacity: Self.errorBytes)
        errorText.initialize(repeating: 0, count: Self.errorBytes)
        path = .allocate(byteCount: RequestPath.byteCount(tokenBytes: 100) + 1, alignment: 1)
        body = .allocate(byteCount: 4096, alignment: 1)
        super.init(number: number)
        fanfare_curl_set_pointer(handle, CURLOPT_PRIVATE, Unmanaged.passUnretained(self).toOpaque())
        fanfare_curl_set_pointer(handle, CURLOPT_HTTPHEADER, idNode)
        fanfare_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText)
        fanfare_curl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress)
        setCallbacks()
    }

    /// Frees the memory. The handle must not be in its connection any more.
    deinit {
        curl_easy_cleanup(handle)
        idNode.deallocate()
        idLine.deallocate()
        errorText.deallocate()
        path.deallocate()
        body.deallocate()
    }

    private func setCallbacks() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        fanfare_curl_set_prereq(
            handle,
            { context, _, _, _, _ in
                guard let context else { return CURL_PREREQFUNC_ABORT }
                return Unmanaged<CurlSlot>.fromOpaque(context).takeUnretainedValue().mayWrite()
            }, context)
        fanfare_curl_set_write(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let slot = Unmanaged<CurlSlot>.fromOpaque(context).takeUnretainedValue()
                slot.append(UnsafeRawBufferPointer(start: bytes, count: size * count))
                return size * count
            }, context)
    }

    static func of(_ handle: UnsafeMutableRawPointer) -> CurlSlot? {
        fanfare_curl_get_private(handle).map { Unmanaged<CurlSlot>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether libcurl may have written a part of the request.
    override var isWritten: Bool { writtenOn != 0 }

    /// 0 also for a response that is not HTTP/2, because another party sent it, such as a proxy.
    override var status: Int {
        guard isWritten, isHTTP2 else { return 0 }
        let status = fanfare_curl_get_long(handle, CURLINFO_RESPONSE_CODE)
        return status >= 200 ? status : 0
    }

    /// Whether the response is HTTP/2.
    var isHTTP2: Bool {
        fanfare_curl_get_long(handle, CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0)
    }

    /// Sets up the request of the slot's push.
    func fill(under chain: HeaderChain, on connection: CurlConnection) {
        guard let entry else { return }
        writtenOn = 0
        isHeldBack = false
        self.connection = connection
        self.chain = chain
        idNode.pointee.next = chain.first
        entry.push.id.write(to: UnsafeMutableRawBufferPointer(rebasing: idLine[Self.idPrefix.utf8CodeUnitCount...]))
        answer.removeAll(keepingCapacity: true)
        errorText.pointee = 0
        fillPath(entry.push.token)
        fillBody(entry.push.payload)
    }

    /// Resets the slot after its handle has left the connection.
    func clear() {
        connection = nil
        chain = nil
    }

    /// Returns libcurl's description of the last failure.
    func summary(for code: CURLcode) -> String {
        errorText.pointee == 0 ? CurlLibrary.summary(for: code) : String(cString: errorText)
    }

    /// Returns the value of a response header, or an empty array if there is none. libcurl keeps headers until the next
    /// request.
    func header(_ name: String) -> [UInt8] {
        var found: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(handle, name, 0, UInt32(CURLH_HEADER), -1, &found) == CURLHE_OK,
            let value = found?.pointee.value
        else { return [] }
        return Array(String(cString: value).utf8)
    }

    /// Tells libcurl whether it may write the request. If a connection ends during a request, libcurl would write it
    /// again on a new one, and APNs might see the push twice. A second write is therefore refused (`ProviderProtocol`
    /// section 9).
    private func mayWrite() -> Int32 {
        guard !isWritten else { return CURL_PREREQFUNC_ABORT }
        isHeldBack = !mayStart
        if isHeldBack { return CURL_PREREQFUNC_ABORT }
        writtenOn = connection?.socketsOpened ?? 1
        return CURL_PREREQFUNC_OK
    }

    private func fillPath(_ token: [UInt8]) {
        let count = RequestPath.byteCount(tokenBytes: token.count)
        if count >= path.count {
            path.deallocate()
            path = .allocate(byteCount: count + 1, alignment: 1)
        }
        RequestPath.write(token: token, to: path)
        path[count] = 0
        // libcurl copies the path. The URL never changes, so it is neither set nor parsed again.
        fanfare_curl_set_pointer(handle, CURLOPT_REQUEST_TARGET, path.baseAddress)
    }

    private func fillBody(_ payload: [UInt8]) {
        if payload.count > body.count {
            body.deallocate()
            body = .allocate(byteCount: payload.count, alignment: 1)
            fanfare_curl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress)
        }
        body.copyBytes(from: payload)
        fanfare_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, payload.count)
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        answer.append(contentsOf: bytes.prefix(Self.answerBytesMax - answer.count))
    }
}

extension CurlSlot {
    private static let idleConnectionSeconds = 3600
    private static let keepAliveSeconds = 60

    /// Sets the options that all requests of a lane share (`ProviderProtocol` section 9).
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
            // A stop must not wait for a resolver that does not respond.
            set(CURLOPT_QUICK_EXIT, 1),
            set(CURLOPT_CONNECTTIMEOUT_MS, max(1, plan.limits.connectDeadline.milliseconds)),
            set(CURLOPT_MAXAGE_CONN, Self.idleConnectionSeconds),
            // Each connect resolves the name again and shuffles the addresses, so that lanes spread (`ProviderProtocol`
            // section 8).
            set(CURLOPT_DNS_CACHE_TIMEOUT, 0),
            set(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1),
            set(CURLOPT_TCP_KEEPALIVE, 1),
            set(CURLOPT_TCP_KEEPIDLE, Self.keepAliveSeconds),
            set(CURLOPT_TCP_KEEPINTVL, Self.keepAliveSeconds),
            setSocketCallback(unacknowledgedMaxMs: plan.limits.requestDeadline.milliseconds),
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

    private func set(_ option: CURLoption, _ value: Int) -> CURLcode {
        fanfare_curl_set_long(handle, option, value)
    }

    /// Sets an option to a text, which libcurl copies.
    private func setText(_ option: CURLoption, _ text: String) -> CURLcode {
        fanfare_curl_set_pointer(handle, option, text)
    }
}

/// The shared headers of a batch as libcurl's linked list. The list is built once and appended to the `apns-id` line of
/// each request of the batch.
///
/// Only one lane's thread uses it. libcurl reads the nodes during the set-up of a request and never writes them.
final class HeaderChain {
    /// One node per header, linked in order. Each node owns its text.
    private let nodes: UnsafeMutablePointer<curl_slist>
    private let count: Int

    var first: UnsafeMutablePointer<curl_slist> { nodes }

    init(headers: PushHeaders, token: ProviderToken?) {
        var lines = headers.sharedHeaders(authorization: token?.authorization).map { header in
            Array(header.name.utf8) + Array(": ".utf8) + header.value + [0]
        }
        // libcurl adds `accept: */*` automatically. A name without a value removes the header.
        lines.append(Array("accept:".utf8) + [0])
        count = lines.count
        nodes = .allocate(capacity: count)
        for (index, line) in lines.enumerated() {
            let text = UnsafeMutableRawPointer.allocate(byteCount: line.count, alignment: 1)
            text.copyMemory(from: line, byteCount: line.count)
            let next = index + 1 < count ? nodes + index + 1 : nil
            let node = curl_slist(data: text.assumingMemoryBound(to: CChar.self), next: next)
            (nodes + index).initialize(to: node)
        }
    }

    deinit {
        for index in 0..<count { UnsafeMutableRawPointer(nodes[index].data)?.deallocate() }
        nodes.deallocate()
    }
}
