import CCurl
import Glibc

/// One multi handle with the epoll set it watches: at most one connection. To retire the connection, drop this.
///
/// Belongs to the lane's thread. libcurl calls back on that thread, inside calls made here, with a pointer to this
/// object; the handle is gone before the object is.
final class CurlConnection {
    private struct Watch {
        var file: Int32
        /// CURL_POLL_IN, _OUT or _INOUT.
        var wanted: Int32
        /// What the kernel knows; 0: nothing yet.
        var applied: Int32 = 0
    }

    private let multi: UnsafeMutableRawPointer
    private let poller: Int32
    private let doorbell: Doorbell
    private var watches: [Watch] = []
    private var timerDue: MonotonicTime?

    /// Nil where memory or file descriptors have run out.
    init?(doorbell: Doorbell) {
        guard CurlLibrary.isReady, let multi = curl_multi_init() else { return nil }
        self.multi = multi
        self.doorbell = doorbell
        poller = fanfare_curl_poller_create()
        guard poller >= 0 else {
            curl_multi_cleanup(multi)
            return nil
        }
        fanfare_curl_poller_watch(poller, doorbell.file, CURL_POLL_IN, 0)
        fanfare_curl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        fanfare_curl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1)
        // Ours is the tighter limit; libcurl's default of 100 would be mistaken for the peer's.
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
        guard poller >= 0 else { return }
        // Closing its sockets libcurl would still call back.
        fanfare_curl_multi_set_socket(multi, nil, nil)
        fanfare_curl_multi_set_timer(multi, nil, nil)
        curl_multi_cleanup(multi)
        close(poller)
    }

    /// False: libcurl did not take it.
    func add(_ slot: CurlSlot) -> Bool { curl_multi_add_handle(multi, slot.handle) == CURLM_OK }

    /// Ends a request that is not done by cancelling its stream.
    func remove(_ slot: CurlSlot) { curl_multi_remove_handle(multi, slot.handle) }

    /// Starts what was added, waits for the network, the doorbell or `milliseconds`, and lets libcurl work.
    func poll(atMost milliseconds: Int64) {
        runTimer()
        applyWatches()
        var wait = milliseconds
        if let timerDue { wait = min(wait, timerDue.millisecondsLeft(at: .now)) }
        var file: Int32 = 0
        var mask: Int32 = 0
        var running: Int32 = 0
        if fanfare_curl_poller_wait(poller, Int32(min(wait, 60_000)), &file, &mask) == 1 {
            if file == doorbell.file {
                doorbell.silence()
            } else {
                curl_multi_socket_action(multi, file, mask, &running)
            }
        }
        runTimer()
    }

    /// The next request that is done, with how it ended.
    func nextCompletion() -> (handle: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            if message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle {
                return (handle, message.pointee.data.result)
            }
        }
        return nil
    }

    private func runTimer() {
        guard let due = timerDue, due <= .now else { return }
        timerDue = nil
        var running: Int32 = 0
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
    }

    private func setTimer(_ milliseconds: Int) {
        timerDue = milliseconds < 0 ? nil : .now + .milliseconds(milliseconds)
    }

    /// libcurl changes its wishes several times per request; the kernel is told once per round, and only what stayed.
    private func watch(_ file: Int32, _ action: Int32) {
        let index = watches.firstIndex { $0.file == file }
        switch (action, index) {
        case (CURL_POLL_REMOVE, let index?):
            if watches[index].applied != 0 { fanfare_curl_poller_watch(poller, file, action, 1) }
            watches.remove(at: index)
        case (CURL_POLL_REMOVE, nil): break
        case (_, let index?): watches[index].wanted = action
        case (_, nil): watches.append(Watch(file: file, wanted: action))
        }
    }

    private func applyWatches() {
        for index in watches.indices where watches[index].wanted != watches[index].applied {
            let watch = watches[index]
            fanfare_curl_poller_watch(poller, watch.file, watch.wanted, watch.applied == 0 ? 0 : 1)
            watches[index].applied = watch.wanted
        }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlConnection? {
        context.map { Unmanaged<CurlConnection>.fromOpaque($0).takeUnretainedValue() }
    }
}
