import Glibc

/// The service manager that started this process, which receives status notices. It uses the protocol of `sd_notify(3)`
/// over a plain datagram socket, without libsystemd.
///
/// A process that was started from a shell has no manager: each call then does nothing. Each notice opens and closes
/// its own socket, because notices are rare. Any thread may send. If a manager does not read for
/// ``DatagramAddress/sendSecondsMax``, the call throws.
package struct ServiceManager: Sendable {
    private let address: DatagramAddress?
    /// The interval of ``ServiceNotice/watchdog``: half of the manager's limit. `nil` if the manager does not watch.
    package let watchdogInterval: Duration?

    /// - Parameters:
    ///   - environment: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` unless `WATCHDOG_PID` names another process.
    ///   - processID: the id of this process.
    package init(environment: [String: String], processID: Int32) throws(ServiceManagerError) {
        let name = environment["NOTIFY_SOCKET"] ?? ""
        address = name.isEmpty ? nil : try DatagramAddress(name)
        watchdogInterval = address == nil ? nil : Self.watchdogInterval(environment, processID)
    }

    /// Whether a manager that accepts notices started the process.
    package var isListening: Bool { address != nil }

    /// Sends all notices in one datagram, so that the manager gets them together.
    package func send(_ notices: ServiceNotice...) throws(ServiceManagerError) {
        guard let address else { return }
        try address.send(notices.map(\.assignments).joined(separator: "\n"))
    }

    /// Announces that the configuration is being reloaded, with the current time. ``ServiceNotice/ready`` ends the
    /// reload.
    package func sendReloading() throws(ServiceManagerError) {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        try send(.reloading(monotonicMicroseconds: UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000))
    }

    /// Sends the watchdog's notice immediately and then every ``watchdogInterval`` until the task is cancelled. Returns
    /// immediately if the manager does not watch.
    ///
    /// - Parameters:
    ///   - isAlive: called before each notice. If it returns false, no notice is sent, and the manager restarts the
    ///     process.
    ///   - sleep: returns early when the task is cancelled.
    package func notifyWatchdog(
        while isAlive: @Sendable () async -> Bool = { true }, sleep: @Sendable (Duration) async -> Void
    ) async throws(ServiceManagerError) {
        guard let watchdogInterval else { return }
        while !Task.isCancelled {
            if await isAlive() { try send(.watchdog) }
            await sleep(watchdogInterval)
        }
    }

    private static func watchdogInterval(_ environment: [String: String], _ processID: Int32) -> Duration? {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0 else {
            return nil
        }
        if let watched = environment["WATCHDOG_PID"], Int32(watched) != processID { return nil }
        return max(.milliseconds(1), .microseconds(microseconds / 2))
    }
}

package enum ServiceManagerError: Error, Hashable, Sendable, CustomStringConvertible {
    case unusableAddress(String)
    case notSent(address: String, reason: String)

    package var description: String {
        switch self {
        case .unusableAddress(let name):
            "NOTIFY_SOCKET is \"\(name)\"; it must be an absolute path or @ and a name, of at most "
                + "\(DatagramAddress.nameBytesMax) bytes"
        case .notSent(let address, let reason): "cannot notify the service manager at \(address): \(reason)"
        }
    }
}

/// A notice from a service to its manager, as in `sd_notify(3)`.
package enum ServiceNotice: Hashable, Sendable {
    /// The service has started, or has completed a reload.
    case ready
    /// A line for people, shown by `systemctl status`.
    case status(String)
    /// The service is reloading its configuration. `ready` ends the reload.
    ///
    /// - Parameter monotonicMicroseconds: CLOCK_MONOTONIC, as `Type=notify-reload` requires.
    case reloading(monotonicMicroseconds: UInt64)
    /// The service is stopping and drains its remaining work.
    case stopping
    /// The service is alive. See ``ServiceManager/watchdogInterval``.
    case watchdog
    /// Starting, reloading or stopping takes longer. The manager's timeout ends after this duration at the earliest.
    case extendTimeout(Duration)

    /// The notice as lines of `NAME=value`. Line ends in a status are replaced, because line ends separate assignments.
    var assignments: String {
        switch self {
        case .ready: "READY=1"
        case .status(let text): "STATUS=\(Self.oneLine(text))"
        case .reloading(let moment): "RELOADING=1\nMONOTONIC_USEC=\(moment)"
        case .stopping: "STOPPING=1"
        case .watchdog: "WATCHDOG=1"
        case .extendTimeout(let duration): "EXTEND_TIMEOUT_USEC=\(max(0, duration.wholeMicroseconds))"
        }
    }

    private static let statusBytesMax = 1024

    private static func oneLine(_ text: String) -> String {
        var line = String(text.map { $0.isNewline || $0 == "\0" ? " " : $0 })
        while line.utf8.count > statusBytesMax { line.unicodeScalars.removeLast() }
        return line
    }
}

extension Duration {
    var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}

/// The address of a unix datagram socket: a path, or an abstract name, written with `@` in front.
struct DatagramAddress: Sendable {
    /// The size of `sun_path`, minus the terminating zero of a path.
    static let nameBytesMax = 107
    static let sendSecondsMax = 2

    private let name: String
    private let address: sockaddr_un
    private let length: socklen_t

    init(_ name: String) throws(ServiceManagerError) {
        var bytes = Array(name.utf8)
        guard let first = name.first, first == "/" || first == "@", (2...Self.nameBytesMax).contains(bytes.count),
            !bytes.contains(0)
        else { throw .unusableAddress(name) }
        // An abstract name begins with a zero byte and has none at its end. The length of the address determines where
        // it ends.
        if first == "@" { bytes[0] = 0 } else { bytes.append(0) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        self.name = name
        self.address = address
        length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2) + socklen_t(bytes.count)
    }

    func send(_ text: String) throws(ServiceManagerError) {
        let file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { throw failure() }
        defer { close(file) }
        var limit = timeval(tv_sec: Self.sendSecondsMax, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(text.utf8)
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(file, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
        guard sent == bytes.count else { throw failure() }
    }

    private func failure() -> ServiceManagerError {
        .notSent(address: name, reason: String(cString: strerror(errno)))
    }
}
