/// One thing a service tells its manager, as `sd_notify(3)` writes it.
package enum ServiceNotice: Hashable, Sendable {
    /// Started, or done with reloading.
    case ready
    /// A line for people, shown by `systemctl status`.
    case status(String)
    /// The configuration is being read again; `ready` ends it.
    ///
    /// - Parameter monotonicMicroseconds: CLOCK_MONOTONIC, as `Type=notify-reload` asks for.
    case reloading(monotonicMicroseconds: UInt64)
    /// On its way out; what is left to do is drained first.
    case stopping
    /// Still alive; see ``ServiceManager/watchdogInterval``.
    case watchdog
    /// Starting, reloading or stopping takes longer: no time-out before this has passed.
    case extendTimeout(Duration)

    /// Lines of `NAME=value`; a status loses its line ends, since they separate assignments.
    var assignments: String {
        switch self {
        case .ready: "READY=1"
        case .status(let words): "STATUS=\(Self.oneLine(words))"
        case .reloading(let moment): "RELOADING=1\nMONOTONIC_USEC=\(moment)"
        case .stopping: "STOPPING=1"
        case .watchdog: "WATCHDOG=1"
        case .extendTimeout(let duration): "EXTEND_TIMEOUT_USEC=\(max(0, duration.wholeMicroseconds))"
        }
    }

    private static let statusBytesMax = 1024

    private static func oneLine(_ words: String) -> String {
        var line = String(words.map { $0.isNewline || $0 == "\0" ? " " : $0 })
        while line.utf8.count > statusBytesMax { line.removeLast() }
        return line
    }
}

extension Duration {
    var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
