/// One header of a request, and how a transport that chooses HPACK forms itself should send it.
struct RequestHeader: Hashable, Sendable {
    enum Indexing: Hashable, Sendable {
        /// The value recurs on the connection: into the dynamic table.
        case indexed
        /// The value is used once: it would only push others out of the 4096-byte table.
        case literal
    }

    var name: String
    var value: [UInt8]
    var indexing: Indexing = .indexed
}

extension PushHeaders {
    /// The headers that all pushes of a batch share, in wire order (`ProviderProtocol` section 4). Before them go
    /// `:method`, `:scheme` and `:authority` (indexed), `:path` and `apns-id` (literal): those two differ per push.
    ///
    /// - Parameter authorization: `bearer <jwt>`; nil where a client certificate speaks for us.
    func sharedHeaders(authorization: [UInt8]?) -> [RequestHeader] {
        var headers: [RequestHeader] = []
        if let authorization {
            headers.append(RequestHeader(name: "authorization", value: authorization))
        }
        headers.append(RequestHeader(name: "apns-push-type", text: pushType))
        headers.append(RequestHeader(name: "apns-topic", text: topic))
        headers.append(RequestHeader(name: "apns-priority", text: String(priority)))
        if let expiration {
            headers.append(RequestHeader(name: "apns-expiration", text: String(expiration)))
        }
        if let collapseID {
            headers.append(RequestHeader(name: "apns-collapse-id", text: collapseID))
        }
        headers.append(RequestHeader(name: "content-type", text: "application/json"))
        return headers
    }
}

extension RequestHeader {
    /// A control character would end the header or the request; it is sent as `?`, which APNs refuses by its own
    /// rules instead of reading a second header.
    fileprivate init(name: String, text: String) {
        self.name = name
        value = text.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0 }
    }
}
