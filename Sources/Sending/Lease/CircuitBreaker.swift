import APNs
import Model
import Store
import Synchronization

/// Holds all lanes to one endpoint back while the service is in trouble: 5xx answers, lost connections, too many new
/// provider tokens (`ProviderProtocol` sections 3, 7 and 8).
///
///     closed --(several failures in a row)--> open --(time)--> half-open --(an answer)--> closed
///                                              ^----(failure)------'
struct CircuitBreaker {
    /// What one response says about the service.
    enum Observation: Hashable {
        /// It answers, whatever it thinks of this push.
        case working
        case failed(Failure)
        /// The provider token was changed too often: APNs asks for a pause.
        case tokenUpdates
        /// Nothing was sent.
        case nothing

        /// One of which no more is known.
        static let failure = Observation.failed(Failure())
    }

    struct Failure: Hashable {
        /// Nil: there was no answer.
        var status: Int?
        /// How long it asks to be left alone.
        var retryAfter: RetryAfter?
    }

    enum Allowance: Hashable {
        case full
        /// A few, to see whether the service is back.
        case probe
        case after(Duration)
    }

    /// Times are ``WallClock/uptime``.
    private enum State {
        /// Lets everything through; so many failures in a row. Goes to `open`.
        case closed(failures: Int)
        /// Lets nothing through. Goes to `halfOpen` when the time is over, to `closed` with an answer to what was still
        /// on the wire.
        case open(level: Int, until: Duration)
        /// A few are on their way; more may follow from `until` on. Goes to `closed`, or to the next level of `open`.
        case halfOpen(level: Int, until: Duration)
    }

    /// In a row. Fewer open nothing: often only the first request after idle time draws a 500.
    static let failuresMin = 5
    static let probeMax = 10
    /// The first with its jitter at most 2 s; some 20 min in all before the endpoint counts as down.
    static let delays: [Duration] = [
        .milliseconds(1600), .seconds(15), .seconds(30), .seconds(60), .seconds(300), .seconds(300), .seconds(300),
        .seconds(300),
    ]
    /// The first pause after TooManyProviderTokenUpdates is 30 s.
    private static let tokenUpdatesLevel = 3
    private static let probeDeadline: Duration = .seconds(30)

    private var state = State.closed(failures: 0)
    private var failingSince: Timestamp?
    private var lastStatus: Int?

    /// Since when nothing but failures came back; nil until a probe has failed after the longest of ``delays``.
    private(set) var downSince: Timestamp?

    /// - Parameter jitter: from 0 to 1, adds up to a fifth, so that hosts do not come back together.
    mutating func observe(_ observation: Observation, at now: ClockReading, jitter: () -> Double) {
        note(observation)
        switch (observation, state) {
        case (.nothing, _): break
        case (.working, .closed(failures: 0)): break
        case (.working, _):
            state = .closed(failures: 0)
            failingSince = nil
        case (.failed(let failure), .closed(let failures))
        where failures + 1 < Self.failuresMin && failure.retryAfter == nil:
            failingSince = failingSince ?? now.wall
            state = .closed(failures: failures + 1)
        case (.failed(let failure), .closed): open(1, now, asked: failure.retryAfter, jitter)
        case (.tokenUpdates, .closed): open(Self.tokenUpdatesLevel, now, jitter)
        // Answers to what was on the wire before it opened; one may ask for longer than the others.
        case (.failed(let failure), .open(let level, let until)):
            guard let asked = failure.retryAfter?.wait(from: now.wall.milliseconds) else { break }
            state = .open(level: level, until: max(until, now.uptime + asked))
        case (.tokenUpdates, .open): break
        case (.failed(let failure), .halfOpen(let level, _)):
            open(level + 1, now, asked: failure.retryAfter, jitter)
        case (.tokenUpdates, .halfOpen(let level, _)): open(level + 1, now, jitter)
        }
    }

    private mutating func note(_ observation: Observation) {
        switch observation {
        case .failed(let failure): lastStatus = failure.status
        case .tokenUpdates: lastStatus = 429
        case .working, .nothing: break
        }
    }

    mutating func allowance(at now: ClockReading) -> Allowance {
        switch state {
        case .closed: return .full
        case .open(let level, let until), .halfOpen(let level, let until):
            guard now.uptime >= until else { return .after(until - now.uptime) }
            state = .halfOpen(level: level, until: now.uptime + Self.probeDeadline)
            return .probe
        }
    }

    /// Who was to see whether the service is back had nothing to send after all: the next one may.
    mutating func probeUnused(at now: ClockReading) {
        if case .halfOpen(let level, _) = state { state = .open(level: level, until: now.uptime) }
    }

    /// What keeps everybody waiting while it is not closed, by the wall clock as it goes now.
    struct Hold: Hashable {
        var since: Timestamp
        /// Of the last answer; nil: there was none.
        var status: Int?
        var nextTryAt: Timestamp
    }

    /// Opens for as long as another process was to wait, and then lets a few through; not for longer than anybody may
    /// be asked to wait, whatever the wall clock shows now.
    mutating func takeOver(_ hold: Hold, at now: ClockReading) {
        guard case .closed = state, hold.nextTryAt > now.wall else { return }
        failingSince = hold.since
        lastStatus = hold.status
        state = .open(level: 1, until: now.uptime + min(hold.nextTryAt - now.wall, RetryAfter.waitMax))
    }

    func hold(at now: ClockReading) -> Hold? {
        switch state {
        case .closed: nil
        case .open(_, let until), .halfOpen(_, let until):
            Hold(since: failingSince ?? now.wall, status: lastStatus, nextTryAt: now.wall + (until - now.uptime))
        }
    }

    /// - Parameter asked: what the answer asks for; the pause is never shorter.
    private mutating func open(
        _ level: Int, _ now: ClockReading, asked: RetryAfter? = nil, _ jitter: () -> Double
    ) {
        if level > Self.delays.count { downSince = downSince ?? failingSince ?? now.wall }
        let delay = Self.delays[min(level, Self.delays.count) - 1]
        failingSince = failingSince ?? now.wall
        let pause = max(delay + delay * (0.2 * jitter()), asked?.wait(from: now.wall.milliseconds) ?? .zero)
        state = .open(level: level, until: now.uptime + pause)
    }
}

extension CircuitBreaker.Observation {
    init(_ row: OutcomePolicy.Row, _ result: PushResult) {
        switch (result, row.decision) {
        case (.notSent, _): self = .nothing
        case (.unknown, _): self = .failure
        case (.answered(let answer), .retry(.service)), (.answered(let answer), .unknown):
            self = .failed(.init(status: answer.status, retryAfter: answer.retryAfter))
        case (.answered, .retry(.credential)): self = .tokenUpdates
        case (.answered, _): self = .working
        }
    }
}

/// The ``CircuitBreaker`` of one endpoint, for all runs and lanes that use it.
final class EndpointBreaker: Sendable {
    private struct State {
        var breaker = CircuitBreaker()
        /// The last answer that told something wanted fewer provider tokens.
        var wantsFewerTokens = false
        /// What another process has heard is no news any more.
        var hasHeard = false
    }

    let endpoint: String
    private let credential: String?
    private let jitter: @Sendable () -> Double
    private let state = Mutex(State())

    /// - Parameter credential: what is sent with there, as people know it.
    init(endpoint: String, credential: String? = nil, jitter: @escaping @Sendable () -> Double) {
        self.endpoint = endpoint
        self.credential = credential
        self.jitter = jitter
    }

    func hold(at now: ClockReading) -> CircuitBreaker.Hold? { state.withLock { $0.breaker.hold(at: now) } }

    /// What the last sender of a run left behind; nothing once this process has had answers of its own.
    func takeOver(_ hold: CircuitBreaker.Hold, at now: ClockReading) {
        state.withLock { state in
            if !state.hasHeard { state.breaker.takeOver(hold, at: now) }
        }
    }

    func allowance(at now: ClockReading) -> CircuitBreaker.Allowance {
        state.withLock { $0.breaker.allowance(at: now) }
    }

    func probeUnused(at now: ClockReading) { state.withLock { $0.breaker.probeUnused(at: now) } }

    /// Returns why the runs must stop when the endpoint is down for good.
    func observe(
        _ observations: some Sequence<CircuitBreaker.Observation>, at now: ClockReading
    ) -> RunControl.StopReason? {
        let (downSince, wantsFewerTokens) = state.withLock { state in
            for observation in observations {
                state.breaker.observe(observation, at: now, jitter: jitter)
                guard observation != .nothing else { continue }
                state.hasHeard = true
                state.wantsFewerTokens = observation == .tokenUpdates
            }
            let downSince = state.breaker.downSince
            // The runs stop. Whoever resumes one has reason to think that the endpoint works: begin anew.
            if downSince != nil { state.breaker = CircuitBreaker() }
            return (downSince, state.wantsFewerTokens)
        }
        return downSince.map { .unreachable(words(since: $0, wantsFewerTokens: wantsFewerTokens)) }
    }

    private func words(since moment: Timestamp, wantsFewerTokens: Bool) -> String {
        guard wantsFewerTokens else {
            return "\(endpoint) has answered nothing but errors since \(moment.iso8601), or not at all; look at "
                + "Apple's system status page and at the network, then run the same command again"
        }
        return "\(endpoint) has refused everything since \(moment.iso8601), at last with TooManyProviderTokenUpdates: "
            + "something else signs provider tokens with \(credential ?? "the same key"), too; let one store send with "
            + "it, and run the same command again after 20 minutes"
    }
}
