import CNGHTTP2

/// What one side of HTTP/2 does with a connection: the core moves bytes and frames, the role gives them meaning.
///
/// Calls come on the loop's thread. Those marked "inside nghttp2" are made in the middle of reading or writing frames:
/// the role may submit frames there, and end the connection only by ``ConnectionCore/abort()``.
protocol ConnectionRole: AnyObject {
    /// TLS stands, the session is new: the place to submit SETTINGS.
    func established()

    /// A block of request or response headers begins. Inside nghttp2.
    func headersBegan(stream: Int32)

    /// Inside nghttp2; the bytes are valid during the call only.
    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

    /// A part of a body. Inside nghttp2; the bytes are valid during the call only.
    func data(stream: Int32, bytes: UnsafeRawBufferPointer)

    /// The peer has sent all it will on this stream. Inside nghttp2.
    func streamEnded(_ stream: Int32)

    /// Both sides are done with the stream, or it was reset. Inside nghttp2.
    func streamClosed(_ stream: Int32, code: UInt32)

    /// A SETTINGS, PING or GOAWAY frame of the peer. Inside nghttp2; the frame is valid during the call only.
    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>)

    /// A request that was submitted cannot go out: the peer is going away. Inside nghttp2.
    func requestNotSent(stream: Int32)

    /// All that had come was read; what is submitted now goes out at once.
    func inputRead()

    /// The connection is over: no other call follows, and the core is not to be used any more.
    func connectionEnded(_ end: ConnectionEnd)
}

extension ConnectionRole {
    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>) {}
    func requestNotSent(stream: Int32) {}
    func inputRead() {}
}

/// Why a connection is over.
package enum ConnectionEnd: Hashable, Sendable {
    /// This side ended it.
    case local
    /// TLS was not agreed.
    case handshake(HandshakeFault)
    /// The peer closed it, or the network did: in words if there is more to say than that.
    case peer(String?)
    /// Both sides have said all: after a GOAWAY, or after a fault of the peer inside the protocol.
    case finished
}
