/// What a server does with the requests of one connection. Every call comes on the connection's loop.
package protocol RequestHandler: AnyObject {
    /// TLS stands and no request was read yet: the place to look at the peer's certificate, and to set a stream limit
    /// other than the server's.
    func connected()

    /// A whole request. Answer it now, or later by ``ServerConnection/wait(milliseconds:for:)``.
    func received(_ request: IncomingRequest)

    /// The time to wait is over, and the request still wants its answer.
    func answerDue(_ request: IncomingRequest)

    /// A stream over the limit was refused.
    func refused(stream: Int32)

    /// The connection is over; its open requests will never be answered.
    func disconnected()
}
