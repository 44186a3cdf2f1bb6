import HTTP2

/// What became of a request so far, kept with it in its tag: enough to correct the books when the connection ends.
struct RequestMark {
    enum Fate: Int {
        /// Not processed.
        case untouched
        case accepted
        case refused
        /// Accepted, and the answer is known never to leave.
        case acceptedAndLost
        /// The books are closed.
        case final
    }

    var sequence: Int
    var fate: Fate

    init(sequence: Int, fate: Fate) {
        self.sequence = sequence
        self.fate = fate
    }

    /// Nil for a request that was not looked at yet.
    init?(_ request: IncomingRequest) {
        guard request.tag > 0, let fate = Fate(rawValue: request.tag & 7) else { return nil }
        self.init(sequence: request.tag >> 3, fate: fate)
    }

    func write(to request: IncomingRequest) {
        request.tag = sequence << 3 | fate.rawValue
    }
}
