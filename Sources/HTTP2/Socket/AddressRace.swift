import CNGHTTP2
import Glibc

/// Connects to the first of several addresses that responds. The next address is tried if one fails or is slow (RFC
/// 8305). Only the loop's thread may use it.
final class AddressRace: TimerTarget {
    /// The time until the next address is tried as well, as RFC 8305 section 5 recommends.
    private static let headStartMs = 250

    /// A socket that is connecting.
    private final class Runner: EventHandler {
        let socket: Int32
        let address: SocketAddress
        /// The race. ``detach()`` releases the reference.
        private var race: AddressRace?

        init(socket: Int32, address: SocketAddress, race: AddressRace) {
            self.socket = socket
            self.address = address
            self.race = race
        }

        func ready(_ readiness: Readiness) { race?.decide(self) }
        func roundEnded() {}
        func abandon() { race?.stop() }

        func detach() { race = nil }
    }

    private let loop: EventLoop
    private var waiting: ArraySlice<SocketAddress>
    private var runners: [Runner] = []
    private var faults: [String] = []
    private let unacknowledgedMaxMs: Int
    /// The completion, called once: with the connected socket, which the receiver then owns, or with `nil` and the
    /// reason.
    private var completed: ((Int32?, String) -> Void)?

    init(
        _ addresses: [SocketAddress], unacknowledgedMaxMs: Int, loop: EventLoop,
        completed: @escaping (Int32?, String) -> Void
    ) {
        waiting = addresses[...]
        self.unacknowledgedMaxMs = unacknowledgedMaxMs
        self.loop = loop
        self.completed = completed
    }

    func start() {
        guard completed != nil else { return }
        while let address = waiting.popFirst() {
            if run(to: address) { return }
        }
        if runners.isEmpty { finish(nil) }
    }

    /// Closes all connecting sockets, and drops the completion.
    func stop() {
        completed = nil
        for runner in runners { drop(runner) }
        runners = []
        waiting = []
    }

    func timerFired(_ tag: Int64) {
        // Only the timer of the newest attempt counts.
        if completed != nil, Int(tag) == faults.count + runners.count { start() }
    }

    private func run(to address: SocketAddress) -> Bool {
        let family = address.isV6 ? AF_INET6 : AF_INET
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family, kind, 0)
        guard socket >= 0 else { return fail(address, errno) }
        set(socket)
        let code = address.withAddress { Glibc.connect(socket, $0, $1) }
        guard code == 0 || errno == EINPROGRESS else {
            let code = errno
            close(socket)
            return fail(address, code)
        }
        let runner = Runner(socket: socket, address: address, race: self)
        guard loop.watch(socket, for: .writable, runner) else {
            close(socket)
            return fail(address, EMFILE)
        }
        runners.append(runner)
        if !waiting.isEmpty {
            let number = Int64(faults.count + runners.count)
            loop.schedule(afterMilliseconds: Self.headStartMs, target: self, tag: number)
        }
        return true
    }

    private func set(_ socket: Int32) {
        var one: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &one, socklen_t(MemoryLayout<Int32>.size))
        var milliseconds = Int32(clamping: unacknowledgedMaxMs)
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<Int32>.size))
    }

    private func decide(_ runner: Runner) {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(runner.socket, SOL_SOCKET, SO_ERROR, &code, &length)
        guard code == 0 else {
            runners.removeAll { $0 === runner }
            drop(runner)
            _ = fail(runner.address, code)
            return start()
        }
        // The event may be for an earlier socket with the same number, so check that this one is connected.
        var address = sockaddr_storage()
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(runner.socket, $0, &length) == 0 }
        }
        guard isConnected else { return }
        runners.removeAll { $0 === runner }
        loop.unwatch(runner.socket)
        runner.detach()
        finish(runner.socket)
    }

    private func fail(_ address: SocketAddress, _ code: Int32) -> Bool {
        faults.append("\(address.host): \(String(cString: strerror(code)))")
        return false
    }

    private func drop(_ runner: Runner) {
        loop.unwatch(runner.socket)
        runner.detach()
        close(runner.socket)
    }

    private func finish(_ socket: Int32?) {
        let completed = completed
        stop()
        completed?(socket, faults.joined(separator: "; "))
    }
}
