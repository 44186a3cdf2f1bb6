package struct PushEndpoint: Hashable, Sendable, CustomStringConvertible {
    package var host: String
    package var port: Int

    package init(host: String, port: Int = 443) {
        self.host = host
        self.port = port
    }

    package static let production = PushEndpoint(host: "api.push.apple.com")
    package static let sandbox = PushEndpoint(host: "api.sandbox.push.apple.com")

    /// Reads `host`, `host:port` or `[v6]:port`, with an optional `https://` before it.
    package init?(parsing text: String) {
        var rest = text[...]
        if rest.hasPrefix("https://") { rest = rest.dropFirst("https://".count) }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        let bracket = rest.lastIndex(of: "]")
        let colon = rest.lastIndex(of: ":").flatMap { colon in bracket.map { colon > $0 } ?? true ? colon : nil }
        let host = rest[..<(colon ?? rest.endIndex)]
        guard !host.isEmpty, !host.contains("/"), !host.contains(" ") else { return nil }
        self.host = String(host)
        port = 443
        guard let colon else { return }
        guard let port = Int(rest[rest.index(after: colon)...]), (1...65535).contains(port) else { return nil }
        self.port = port
    }

    package var description: String { "\(host):\(port)" }
}

extension PushEndpoint {
    /// Without the brackets of an IPv6 address.
    var bareHost: String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// The value of `:authority`.
    var authority: String {
        let host = bareHost.contains(":") ? "[\(bareHost)]" : bareHost
        return port == 443 ? host : "\(host):\(port)"
    }
}
