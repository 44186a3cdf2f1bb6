import Glibc

/// Tests whether a port of this machine is free, by listening on it briefly.
package enum PortProbe {
    package enum Result: Hashable, Sendable {
        case free
        /// Another process listens on the port.
        case taken
        case unusable(reason: String)
    }

    /// - Parameters:
    ///   - host: an IP address.
    ///   - port: 0 means any free port.
    package static func result(host: String, port: Int) -> Result {
        guard port != 0 else { return .free }
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let entry = found?.pointee else {
            return .unusable(reason: "\(host) is not an IP address")
        }
        defer { freeaddrinfo(found) }
        let file = socket(entry.ai_family, entry.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), entry.ai_protocol)
        guard file >= 0 else { return .unusable(reason: String(cString: strerror(errno))) }
        defer { close(file) }
        // The server also sets this option: a connection that is still closing does not occupy the port.
        var isOn: Int32 = 1
        setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        guard bind(file, entry.ai_addr, entry.ai_addrlen) == 0, listen(file, 1) == 0 else {
            return errno == EADDRINUSE ? .taken : .unusable(reason: String(cString: strerror(errno)))
        }
        return .free
    }
}
