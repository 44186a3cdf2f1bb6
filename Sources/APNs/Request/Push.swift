/// The headers that all pushes of a batch have in common (`ProviderProtocol` section 4).
package struct PushHeaders: Hashable, Sendable {
    /// Bundle id with the push type's suffix.
    package var topic: String
    package var pushType: String
    /// 10, 5 or 1.
    package var priority: Int
    /// UNIX seconds; 0 = one attempt, not stored; nil = header left out, APNs' own storage policy.
    package var expiration: Int64?
    /// At most 64 bytes.
    package var collapseID: String?

    package init(topic: String, pushType: String, priority: Int, expiration: Int64? = nil, collapseID: String? = nil) {
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
    }
}

/// One request to APNs. Rows of a batch share the storage of a payload that does not differ between them.
package struct Push: Sendable {
    /// The caller's name for it, given back with the response.
    package var tag: Int64
    package var id: PushID
    /// The token's bytes, not hex.
    package var token: [UInt8]
    /// JSON in UTF-8.
    package var payload: [UInt8]

    package init(tag: Int64, id: PushID, token: [UInt8], payload: [UInt8]) {
        self.tag = tag
        self.id = id
        self.token = token
        self.payload = payload
    }
}

/// What crosses from `Sending` to a lane at once: about a thousand pushes under the same headers. The first ones
/// should be those most likely to be accepted: a fresh connection is warmed up with them.
package struct PushBatch: Sendable {
    package var headers: PushHeaders
    package var pushes: [Push]

    package init(headers: PushHeaders, pushes: [Push]) {
        self.headers = headers
        self.pushes = pushes
    }
}
