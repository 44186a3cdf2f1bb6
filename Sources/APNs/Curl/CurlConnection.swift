import CCurl
import Glibc
import HTTP2

/// One connection of a curl lane: a multi handle whose sockets the lane's event loop watches. libcurl connects with the
/// first request, and reconnects automatically after the peer closes. Dropping the handle retires the connection.
///
/// Only the lane's thread may use it. libcurl calls back on that thread, inside calls made here, with a pointer to this
/// object. ``close()`` or `deinit` ends the callbacks before the object is freed.
final class CurlConnection: LaneConnection {
    typealias Slot = CurlSlot
    typealias Headers = HeaderChain
    typealias Context = Void

    static let traits = LaneStateMachine.Traits(seesSettings: false, sendsPing: false)

    let id: Int
    private let driver: LaneDriver<CurlConnection>
    private let multi: UnsafeMutableRawPointer
    private var watches: [SocketWatch] = []
    /// The time at which libcurl wants to be called, by the loop's clock.
    private var timerDue: UInt64?
    private var inFlight: [CurlSlot] = []
    /// The number of sockets opened so far. It distinguishes the successive connections of libcurl.
    fileprivate(set) var socketsOpened = 0
    private var socketsSeen = 0
    /// Whether the newest socket has received a response.
    private var isProven = false
    private var isClosed = false

    init(id: Int, driver: LaneDriver<CurlConnection>) throws(TransportError) {
        self.id = id
        self.driver = driver
        guard CurlLibrary.isReady, let multi = curl_multi_init() else {
            throw .unreachable(driver.plan.endpoint, reason: "out of file descriptors or memory")
        }
        self.multi = multi
        fanfare_curl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        fanfare_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1)
        // Only the peer's limit and ``CurlTransport/streamsMax`` are to apply, not libcurl's default of 100.
        fanfare_curl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000)
        let context = Unmanaged.passUnretained(self).toOpaque()
        fanfare_curl_multi_set_socket(
            multi,
            { _, file, action, context, _ in
                CurlConnection.from(context)?.watch(file, action)
                return 0
            }, context)
        fanfare_curl_multi_set_timer(
            multi,
            { _, milliseconds, context in
                CurlConnection.from(context)?.setTimer(milliseconds)
                return 0
            }, context)
    }

    deinit {
        if !isClosed { dropHandle() }
    }

    static func slot(number: Int, _ plan: LanePlan) throws(TransportError) -> CurlSlot {
        guard CurlLibrary.isReady, let slot = CurlSlot(slot: number) else {
            throw .unreachable(plan.endpoint, reason: "libcurl is out of memory")
        }
        let code = slot.setOptions(plan)
        guard code == CURLE_OK else {
            let reason = "this libcurl lacks what APNs needs: \(CurlLibrary.summary(for: code))"
            throw .unreachable(plan.endpoint, reason: reason)
        }
        return slot
    }

    static func headers(_ headers: PushHeaders, _ token: ProviderToken?, _ plan: LanePlan) -> HeaderChain {
        HeaderChain(headers: headers, token: token)
    }

    /// Reports the connection as open immediately, because the first request connects.
    func open() { driver.opened(self, streamLimit: .max) }

    func start(_ slot: CurlSlot, under headers: HeaderChain) -> Bool {
        slot.fill(under: headers, on: self)
        guard curl_multi_add_handle(multi, slot.handle) == CURLM_OK else {
            slot.clear()
            driver.fail(.unreachable(driver.plan.endpoint, reason: "libcurl refused the request"))
            return false
        }
        slot.index = inFlight.count
        inFlight.append(slot)
        return true
    }

    /// Ends the request. libcurl's own deadline misses requests that wait for a stream, and costs a timer per request.
    func expire(_ slot: CurlSlot) { settle(slot, CURLE_OPERATION_TIMEDOUT) }

    /// Does nothing: libcurl sends no PING.
    func ping() {}

    func abort(_ summary: String) { close() }

    /// Closes the connection. Cancels its streams, so that requests still in flight end.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        let ends = inFlight.map { slot in (slot: slot, end: slot.isWritten ? endOfWritten(slot) : .notProcessed) }
        dropHandle()
        for (slot, end) in ends {
            slot.clear()
            driver.ended(slot, end, on: self)
        }
        driver.closed(self, "closed by Fanfare")
    }

    /// Returns the end of a written request whose stream is cancelled. Its response may have come without its end.
    private func endOfWritten(_ slot: CurlSlot) -> RequestEnd {
        switch CurlVerdict(CURLE_ABORTED_BY_CALLBACK, slot, plan: driver.plan, isProven: isProven) {
        case .answered(let answer, let latency): .answered(answer, latencyMicroseconds: latency)
        case .cutOff(let status): .cutOff(status: status)
        default: .lost("the connection was closed")
        }
    }

    private func dropHandle() {
        // libcurl would otherwise still call back while closing its sockets.
        fanfare_curl_multi_set_socket(multi, nil, nil)
        fanfare_curl_multi_set_timer(multi, nil, nil)
        for watch in watches where watch.isKnown { driver.loop.unwatch(watch.file) }
        watches = []
        for slot in inFlight { curl_multi_remove_handle(multi, slot.handle) }
        inFlight = []
        curl_multi_cleanup(multi)
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlConnection? {
        context.map { Unmanaged<CurlConnection>.fromOpaque($0).takeUnretainedValue() }
    }
}

// MARK: Sockets and timers of libcurl

extension CurlConnection {
    /// Runs libcurl's due timer, which also starts added requests.
    func attend(_ now: UInt64) -> UInt64 {
        guard !isClosed else { return .max }
        var hasNews = false
        if let due = timerDue, due <= driver.loop.now() {
            timerDue = nil
            var running: Int32 = 0
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
            hasNews = collect()
        }
        applyWatches()
        return hasNews ? now : timerDue ?? .max
    }

    fileprivate func ready(_ file: Int32, _ readiness: Readiness) {
        guard !isClosed else { return }
        var mask: Int32 = 0
        if readiness.contains(.readable) { mask |= CURL_CSELECT_IN }
        if readiness.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: .broken) { mask |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        curl_multi_socket_action(multi, file, mask, &running)
        _ = collect()
        driver.pumpAtRoundEnd()
    }

    private func setTimer(_ milliseconds: Int) {
        timerDue = milliseconds < 0 ? nil : driver.loop.now() + UInt64(milliseconds) * 1_000_000
    }

    /// Records the events that libcurl wants for a socket. libcurl changes them several times per request, so
    /// ``applyWatches()`` passes only the final ones to the kernel, once per round. A removal takes effect immediately.
    private func watch(_ file: Int32, _ action: Int32) {
        let index = watches.firstIndex { $0.file == file }
        switch (action, index) {
        case (CURL_POLL_REMOVE, let index?):
            if watches[index].isKnown { driver.loop.unwatch(file) }
            watches.remove(at: index)
        case (CURL_POLL_REMOVE, nil): break
        case (_, let index?): watches[index].wanted = action
        case (_, nil): watches.append(SocketWatch(file: file, wanted: action, connection: self))
        }
    }

    private func applyWatches() {
        for watch in watches where watch.wanted != watch.applied {
            var interest: Readiness = []
            if watch.wanted & CURL_POLL_IN != 0 { interest.insert(.readable) }
            if watch.wanted & CURL_POLL_OUT != 0 { interest.insert(.writable) }
            if watch.isKnown {
                driver.loop.change(watch.file, to: interest)
            } else {
                _ = driver.loop.watch(watch.file, for: interest, watch)
            }
            watch.applied = watch.wanted
        }
    }
}

/// A socket of libcurl's that the loop watches.
private final class SocketWatch: EventHandler {
    let file: Int32
    /// CURL_POLL_IN, _OUT or _INOUT.
    var wanted: Int32
    /// The events that the kernel watches for. 0 if none yet.
    var applied: Int32 = 0
    private unowned let connection: CurlConnection

    init(file: Int32, wanted: Int32, connection: CurlConnection) {
        self.file = file
        self.wanted = wanted
        self.connection = connection
    }

    var isKnown: Bool { applied != 0 }

    func ready(_ readiness: Readiness) { connection.ready(file, readiness) }

    func roundEnded() {}

    func abandon() {}
}

// MARK: The end of a request

extension CurlConnection {
    /// Handles finished requests and new sockets. Returns whether the lane must decide again.
    private func collect() -> Bool {
        var hasNews = noteNewSockets()
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else { continue }
            let code = message.pointee.data.result
            guard let slot = CurlSlot.of(handle) else { continue }
            settle(slot, code)
            hasNews = true
        }
        return hasNews
    }

    /// Handles a newly opened socket, which makes everything known about the connection obsolete. Requests that wait
    /// for the socket would all start together once it is connected. They are therefore queued again, and one request
    /// opens the connection alone (`ProviderProtocol` section 9).
    private func noteNewSockets() -> Bool {
        guard socketsOpened != socketsSeen else { return false }
        socketsSeen = socketsOpened
        isProven = false
        driver.reconnected(self)
        let waiting = inFlight.filter { !$0.isWritten }
        guard waiting.count > 1 else { return true }
        for slot in waiting {
            release(slot)
            driver.ended(slot, .notProcessed, on: self)
        }
        return true
    }

    private func settle(_ slot: CurlSlot, _ code: CURLcode) {
        driver.made(connections: fanfare_curl_get_long(slot.handle, CURLINFO_NUM_CONNECTS))
        if slot.isHeldBack {
            release(slot)
            return driver.ended(slot, .notProcessed, on: self)
        }
        let verdict = CurlVerdict(code, slot, plan: driver.plan, isProven: isProven)
        // A request that ends on a replaced connection is no evidence about the new one.
        let isStale = slot.writtenOn != socketsOpened
        release(slot)
        switch verdict {
        case .answered(let answer, let latency):
            if !isStale { isProven = true }
            driver.ended(slot, .answered(answer, latencyMicroseconds: latency), on: self, isStale: isStale)
        case .cutOff(let status):
            driver.ended(slot, .cutOff(status: status), on: self, isStale: isStale)
        case .missedDeadline:
            driver.expired(slot, isWritten: true)
            driver.ended(slot, .notProcessed, on: self)
            if !isStale { driver.missedDeadline(self) }
        case .lost(let summary):
            driver.ended(slot, .lost(summary), on: self)
            if !isStale {
                isProven = false
                driver.lost(on: self, summary)
            }
        case .notHTTP2:
            let reason = "it does not support HTTP/2; check whether a proxy inspects TLS"
            driver.ended(slot, .lost(reason), on: self)
            driver.fail(.untrusted(driver.plan.endpoint, reason: reason))
        case .neverStarted:
            driver.expired(slot, isWritten: false)
            driver.ended(slot, .notProcessed, on: self)
        case .notConnected(let error, let isFinal):
            driver.ended(slot, .notProcessed, on: self)
            if code == CURLE_OPERATION_TIMEDOUT, wasPaused(slot) { return }
            driver.openFailed(self, error, isFinal: isFinal)
        }
    }

    /// Tells whether the process was paused while it connected. libcurl's time limit includes such a pause, and the
    /// loop's clock does not. The connect then had less time than allowed, so the request restarts.
    private func wasPaused(_ slot: CurlSlot) -> Bool {
        let tolerance: UInt64 = 500_000_000
        return driver.loop.roundStart - slot.startedAt + tolerance < driver.plan.limits.connectDeadline.nanoseconds
    }

    private func release(_ slot: CurlSlot) {
        curl_multi_remove_handle(multi, slot.handle)
        let last = inFlight.removeLast()
        if last !== slot {
            inFlight[slot.index] = last
            last.index = slot.index
        }
        slot.clear()
    }
}

extension CurlSlot {
    /// Notifies the connection of each new socket, and sets how long the kernel may wait for an acknowledgement.
    func setSocketCallback(unacknowledgedMaxMs: Int) -> CURLcode {
        self.unacknowledgedMaxMs = Int32(clamping: unacknowledgedMaxMs)
        return fanfare_curl_set_sockopt(
            handle,
            { context, socket, _ in
                guard let context else { return CURL_SOCKOPT_OK }
                let slot = Unmanaged<CurlSlot>.fromOpaque(context).takeUnretainedValue()
                slot.connection?.socketsOpened += 1
                setsockopt(socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &slot.unacknowledgedMaxMs, 4)
                return CURL_SOCKOPT_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}
