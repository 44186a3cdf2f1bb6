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

    /// The connection is over: no other call follows, and the core is not to be used any more.
    func connectionEnded()
}
