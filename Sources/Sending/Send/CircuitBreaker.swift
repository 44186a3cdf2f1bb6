import APNs
import Model

/// Holds all lanes to one endpoint back while the service is in trouble: 5xx answers, lost connections, too many new
/// provider tokens (`apns-protocol.md` sections 3, 7 and 8).
///
///     open --(several troubles in a row)--> held --(time)--> probing --(an answer)--> open
///                                            ^------(trouble)----'
struct CircuitBreaker {
    /// What one response says about the service.
    enum Sign: Hashable {
        /// It works, whatever it thinks of this push.
        case working
        case trouble
        /// We changed our provider token too often: APNs wants a pause.
        case tokenUpdates
        case nothing
    }

    enum Allowance: Hashable {
        case full
        /// A few, to see whether the service is back.
        case probe
        case after(Timestamp)
    }

    private enum State {
        /// So many troubles in a row. Goes to `held`.
        case open(troubles: Int)
        /// Goes to `probing` when the time is over, to `open` with an answer to what was still on the wire.
        case held(level: Int, until: Timestamp)
        /// A few are on their way; more may follow from `until` on. Goes to `open` or to the next level of `held`.
        case probing(level: Int, until: Timestamp)
    }

    /// Fewer are bad luck; often only the first request after idle time draws a 500.
    static let troublesMin = 5
    static let probeMax = 10
    static let delays: [Duration] = [.seconds(2), .seconds(30), .seconds(60), .seconds(300), .seconds(900)]
    /// The first pause after TooManyProviderTokenUpdates is 30 s.
    private static let tokenUpdatesLevel = 2
    private static let probeDeadline: Duration = .seconds(30)

    private var state = State.open(troubles: 0)
    private var inTroubleSince: Timestamp?

    /// Since when nothing but trouble comes back, once even the longest pause did not help.
    private(set) var downSince: Timestamp?

    /// - Parameter jitter: from 0 to 1, adds up to a fifth, so that hosts do not come back together.
    mutating func saw(_ sign: Sign, at now: Timestamp, jitter: () -> Double) {
        switch (sign, state) {
        case (.nothing, _): break
        case (.working, .open(troubles: 0)): break
        case (.working, _):
            state = .open(troubles: 0)
            inTroubleSince = nil
        case (.trouble, .open(let troubles)) where troubles + 1 < Self.troublesMin:
            inTroubleSince = inTroubleSince ?? now
            state = .open(troubles: troubles + 1)
        case (.trouble, .open): hold(1, now, jitter)
        case (.tokenUpdates, .open): hold(Self.tokenUpdatesLevel, now, jitter)
        // Of what was on the wire before.
        case (.trouble, .held), (.tokenUpdates, .held): break
        case (.trouble, .probing(let level, _)), (.tokenUpdates, .probing(let level, _)): hold(level + 1, now, jitter)
        }
    }

    mutating func allowance(at now: Timestamp) -> Allowance {
        switch state {
        case .open: return .full
        case .held(let level, let until), .probing(let level, let until):
            guard now >= until else { return .after(until) }
            state = .probing(level: level, until: now + Self.probeDeadline)
            return .probe
        }
    }

    private mutating func hold(_ level: Int, _ now: Timestamp, _ jitter: () -> Double) {
        if level > Self.delays.count { downSince = downSince ?? inTroubleSince ?? now }
        let delay = Self.delays[min(level, Self.delays.count) - 1]
        inTroubleSince = inTroubleSince ?? now
        state = .held(level: level, until: now + delay + delay * (0.2 * jitter()))
    }
}

extension CircuitBreaker.Sign {
    init(_ row: OutcomePolicy.Row, _ result: PushResult) {
        switch (result, row.decision) {
        case (.notSent, _): self = .nothing
        case (.unknown, _), (.answered, .retry(.service)), (.answered, .unknown): self = .trouble
        case (.answered, .retry(.credential)): self = .tokenUpdates
        case (.answered, _): self = .working
        }
    }
}
