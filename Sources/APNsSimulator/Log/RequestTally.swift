/// How often one push, or one device, was seen, and what became of it: from the other side of a client's books.
package struct RequestTally: Hashable, Sendable {
    /// 200, whether the client learned of it or not: more than one is a double on the device.
    package var accepted = 0
    /// Any other answer, whether it arrived or not.
    package var refused = 0
    /// Of the accepted and refused: the answer never left.
    package var lost = 0
    /// Seen and not processed: refused streams, resets and GOAWAY.
    package var untouched = 0

    package init() {}

    package var requests: Int { accepted + refused + untouched }

    fileprivate mutating func count(_ entry: SimulatorLogEntry) {
        switch entry.status {
        case 0: untouched += 1
        case 200: accepted += 1
        default: refused += 1
        }
        if entry.isAnswerLost { lost += 1 }
    }
}

extension [SimulatorLogEntry] {
    /// By `apns-id`.
    package var talliesByID: [String: RequestTally] {
        reduce(into: [:]) { $0[$1.apnsID, default: RequestTally()].count($1) }
    }

    /// By token, lower-case hex; requests without one are left out.
    package var talliesByToken: [String: RequestTally] {
        reduce(into: [:]) { tallies, entry in
            if let token = entry.token { tallies[token, default: RequestTally()].count(entry) }
        }
    }
}
