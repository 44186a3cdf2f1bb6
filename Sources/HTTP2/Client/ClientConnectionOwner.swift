/// Receives the events of a client connection, on the loop's thread. Calls marked "inside nghttp2" may come during the
/// reading or writing of frames. The owner may submit frames there, and end the connection only by
/// ``ClientConnection/abort(_:)``.
package protocol ClientConnectionOwner: AnyObject {
    /// TLS is established and the peer's first SETTINGS have arrived. Requests may be submitted.
    func opened(_ connection: ClientConnection)

    /// A request has ended and may be reused. Each submitted request gets this call once. Inside nghttp2.
    func ended(_ request: ClientRequest, _ end: ClientRequest.End, on connection: ClientConnection)

    /// The peer accepts no new requests. Requests beyond the last stream of the notice end next, as not processed. The
    /// call may come several times. Inside nghttp2.
    func goingAway(_ connection: ClientConnection, _ notice: GoAwayNotice)

    /// The process stood still before it could write what was gathered, and the permission to send may be over. The
    /// connection writes nothing more. Requests that were not written whole have ended as not processed; the others may
    /// still get their responses. The owner ends the connection.
    func suspended(_ connection: ClientConnection)

    /// All arrived data was read. Requests submitted now are written together, immediately. The stream limit may have
    /// changed.
    func inputRead(_ connection: ClientConnection)

    /// The connection has ended, or could not be opened. No other call follows.
    func closed(_ connection: ClientConnection, _ reason: ClientConnectionEnd)
}

/// A GOAWAY frame (RFC 9113 section 6.8).
package struct GoAwayNotice: Hashable, Sendable {
    package var lastStream: Int32
    package var code: UInt32
    /// The first bytes of the peer's explanation.
    package var debugData: [UInt8]

    package init(lastStream: Int32, code: UInt32, debugData: [UInt8]) {
        self.lastStream = lastStream
        self.code = code
        self.debugData = debugData
    }
}

package enum ClientConnectionEnd: Hashable, Sendable {
    /// The name has no address, no address responded, or the connection was not open before the deadline.
    case unreachable(String)
    /// TLS was not established.
    case handshake(HandshakeFault)
    /// TLS was established, and the connection ended. The text is the reason.
    case lost(String)
    /// This side ended it.
    case local
}
