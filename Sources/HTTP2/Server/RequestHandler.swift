/// What a server does with the requests of one connection. Every call comes on the connection's loop.
package protocol RequestHandler: AnyObject {
    /// TLS stands and no request was read yet: the place to look at the peer's certificate, and to set a stream limit
    /// other than the server's.
    func connected()

    /// A whole request. Answer it now or later, while its stream is open.
    func received(_ request: IncomingRequest)

    /// The stream of a request is over, as is the whole connection when this comes before ``disconnected()``: `isDone`
    /// when its answer was written to the end, not when it was never given, cut short or still waiting to leave.
    func closed(_ request: IncomingRequest, isDone: Bool)

    /// A stream over the limit was refused.
    func refused(stream: Int32)

    /// The connection is over; its open requests will never be answered.
    func disconnected()
}
