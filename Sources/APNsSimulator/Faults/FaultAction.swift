/// What goes wrong. What a rule's ``FaultRule/Moment`` makes of it is said there.
package enum FaultAction: Hashable, Sendable {
    /// Any status and reason, known or not; `timestamp` in milliseconds since 1970.
    case answer(status: Int, reason: String, timestamp: Int64? = nil)
    /// A body that is no JSON, as a balancer in front of the service sends.
    case page(status: Int, body: String)
    /// The request is judged as usual and answered later.
    case delay(milliseconds: Int)
    /// Never an answer; the stream stays open.
    case silence
    /// Nothing at all comes any more on this connection, PING acknowledgements included; TCP stays up.
    case silentConnection
    /// RST_STREAM with an error code of RFC 9113 section 7: 2 INTERNAL_ERROR, 7 REFUSED_STREAM, 8 CANCEL.
    case reset(code: UInt32)
    /// The request is judged as usual; after the headers of its answer the stream is reset with INTERNAL_ERROR.
    case cutAnswer
    /// GOAWAY. What `lastStream` does not cover is not processed, this request included; what it covers is answered as
    /// usual, or lost with the connection when that `closes` at once. `text` in place of Apple's JSON. `isTwice`: one with
    /// the highest stream goes before it, as in a shutdown that was announced.
    case goAway(
        lastStream: LastStream, reason: String?, text: String? = nil, isTwice: Bool = false, closes: Bool = false)
    /// SETTINGS with this many streams, for a while or for good; the request is judged as usual.
    case streamLimit(Int, forMilliseconds: Int? = nil)
    /// The connection ends without a word.
    case close
    /// Every connection of this environment ends without a word, and its port refuses new ones for so long.
    case outage(milliseconds: Int)

    package enum LastStream: String, Hashable, Sendable, CaseIterable {
        /// 0: nothing was processed.
        case none
        /// The last one before this request.
        case before
        /// The older half of the requests that wait for their answers, this one included.
        case middle
        /// This request.
        case this
        /// 2^31-1: everything that was sent may have been processed.
        case all
    }

    /// REFUSED_STREAM: not processed, may be sent again freely.
    package static var refuseStream: FaultAction { .reset(code: 7) }

    /// For the log.
    package var name: String {
        switch self {
        case .answer: "answer"
        case .page: "page"
        case .delay: "delay"
        case .silence: "silence"
        case .silentConnection: "silent_connection"
        case .reset: "reset"
        case .cutAnswer: "cut_answer"
        case .goAway: "goaway"
        case .streamLimit: "stream_limit"
        case .close: "close"
        case .outage: "outage"
        }
    }

    /// No answer follows.
    var withholdsAnswer: Bool {
        switch self {
        case .silence, .silentConnection, .reset, .close, .outage: true
        case .goAway(_, _, _, _, let closes): closes
        case .answer, .page, .delay, .cutAnswer, .streamLimit: false
        }
    }
}
