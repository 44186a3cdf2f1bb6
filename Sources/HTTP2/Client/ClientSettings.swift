/// Where a client connects to, and its bounds.
package struct ClientSettings: Sendable {
    package var peer: TLSPeer
    package var tls: TLSContext
    /// Counts connections of the whole client: each begins with another of the peer's addresses.
    package var turn = 0
    /// From the first look at the name to the peer's first SETTINGS.
    package var connectDeadlineMs = 10_000
    /// How long the kernel waits for an acknowledgement before it gives the connection up.
    package var unacknowledgedMaxMs = 20_000
    /// Odd. Tests begin near the end of the numbers.
    package var firstStream: Int32 = 1

    package init(peer: TLSPeer, tls: TLSContext) {
        self.peer = peer
        self.tls = tls
    }
}

/// What the user of a client connection is told, on the loop's thread. Inside nghttp2 it may submit frames, and end the
/// connection only by ``ClientConnection/abort(_:)``.
package protocol ClientConnectionOwner: AnyObject {
    /// TLS stands and the peer's first SETTINGS are in: requests may be submitted.
    func opened(_ connection: ClientConnection)

    /// A request is over and may be used again. Each one that was submitted gets here once. Inside nghttp2.
    func ended(_ request: ClientRequest, _ end: ClientRequest.End, on connection: ClientConnection)

    /// The peer takes no new requests; those beyond its last stream end next, as not processed. May come more than once.
    /// Inside nghttp2.
    func goingAway(_ connection: ClientConnection, _ notice: GoAwayNotice)

    /// All that had come was read; what is submitted now is written at once, together. The stream limit may be another.
    func inputRead(_ connection: ClientConnection)

    /// The connection is over, or never was: no other call follows.
    func closed(_ connection: ClientConnection, _ reason: ClientConnectionEnd)
}

/// A GOAWAY frame (RFC 9113 section 6.8).
package struct GoAwayNotice: Hashable, Sendable {
    package var lastStream: Int32
    package var code: UInt32
    /// What the peer says about it, its first bytes.
    package var debugData: [UInt8]

    package init(lastStream: Int32, code: UInt32, debugData: [UInt8]) {
        self.lastStream = lastStream
        self.code = code
        self.debugData = debugData
    }
}

package enum ClientConnectionEnd: Hashable, Sendable {
    /// The name has no address, nobody answers there, or not in time.
    case unreachable(String)
    /// TLS was not agreed.
    case handshake(HandshakeFault)
    /// It stood, and ended: in words.
    case lost(String)
    /// This side ended it.
    case local
}
