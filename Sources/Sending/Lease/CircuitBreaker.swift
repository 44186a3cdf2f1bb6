import APNs
import Model
import Store
import Synchronization

/// The circuit breaker of one endpoint. It holds back all lanes after signs of trouble: 5xx responses, lost connections
/// or too many new provider tokens. See `ProviderProtocol` sections 3, 7 and 8.
///
///     closed --(several failures in a row)--> open --(time)--> half-open --(a response)--> closed
///                                              ^----(failure)------'
///
/// A response with `Retry-After` opens the breaker immediately, for at least that time.
struct CircuitBreaker {
    /// What one response says about the service.
    enum Observation: Hashable {
        /// The service responds, even if it refuses this push.
        case working
        case failed(Failure)
        /// The provider token was changed too often, and APNs asks for a pause.
        case tokenUpdates
        /// The service responds, and refuses the credential.
        case credentialRefused
        /// Nothing was sent.
        case nothing

        /// Whether APNs responds, even if it refuses the push or the credential.
        var isResponse: Bool { self == .working || self == .credentialRefused }

        /// A failure without a known status.
        static let failure = Observation.failed(Failure())
    }

    struct Failure: Hashable {
        /// The status of the response. `nil` if there was no response.
        var status: Int?
        /// How long the response asks the sender to wait.
        var retryAfter: RetryAfter?
    }

    enum Allowance: Hashable {
        case full
        /// A few requests, to check whether the service is back.
        case probe
        /// One request, to check whether the credential is accepted again.
        case single
        case after(Duration)
    }

    /// The state of the breaker. Times are ``WallClock/uptime``.
    private enum State {
        /// Lets all requests start, and counts consecutive failures. Changes to `open`.
        case closed(failures: Int)
        /// Lets no request start. Changes to `halfOpen` at `until`. A response to a request on the wire changes it to
        /// `closed`, unless a `Retry-After` asked for the pause.
        case open(level: Int, until: Duration)
        /// A few probes are in flight, and more may follow after `until`. Changes to `closed`, or to the next level of
        /// `open`.
        case halfOpen(level: Int, until: Duration)
    }

    /// The number of consecutive failures that open the breaker. It is more than 1, because often only the first
    /// request after idle time gets a 500.
    static let failuresMin = 5
    static let probeMax = 10
    /// The pauses. The first is at most 2 s with its jitter. All of them, about 20 min, pass before the endpoint counts
    /// as down.
    static let delays: [Duration] = [
        .milliseconds(1600), .seconds(15), .seconds(30), .seconds(60), .seconds(300), .seconds(300), .seconds(300),
        .seconds(300),
    ]
    /// The first pause after TooManyProviderTokenUpdates is 30 s.
    private static let tokenUpdatesLevel = 3
    private static let probeDeadline: Duration = .seconds(30)

    private var state = State.closed(failures: 0)
    /// The end of the wait that a response has asked for. Good responses do not close the breaker before this time.
    private var askedUntil = Duration.zero
    private var failingSince: Timestamp?
    private var lastStatus: Int?
    /// When the next single request may start, by ``WallClock/uptime``. `nil` if requests need not start one at a time.
    private var nextSingle: Duration?

    /// Whether fewer requests may start than a caller asks for.
    var isHeld: Bool {
        if case .closed = state { return nextSingle != nil }
        return true
    }

    /// Since when only failures arrive. `nil` until a probe has failed after the last of ``delays``.
    private(set) var downSince: Timestamp?

    /// - Parameter jitter: from 0 to 1. It adds up to a fifth to a pause, so that machines do not retry together.
    mutating func observe(_ observation: Observation, at now: ClockReading, jitter: () -> Double) {
        note(observation, at: now)
        switch (observation, state) {
        case (.nothing, _): break
        case (.working, .closed(failures: 0)), (.credentialRefused, .closed(failures: 0)): break
        case (.working, .open) where askedUntil > now.uptime,
            (.credentialRefused, .open) where askedUntil > now.uptime:
            state = .open(level: 1, until: askedUntil)
        case (.working, _), (.credentialRefused, _):
            state = .closed(failures: 0)
            failingSince = nil
        case (.failed(let failure), .closed(let failures))
        where failures + 1 < Self.failuresMin && failure.retryAfter == nil:
            failingSince = failingSince ?? now.wall
            state = .closed(failures: failures + 1)
        case (.failed(let failure), .closed): open(1, now, asked: failure.retryAfter, jitter)
        case (.tokenUpdates, .closed): open(Self.tokenUpdatesLevel, now, jitter)
        // Responses to requests sent before the breaker opened. One may ask for a longer pause than the others.
        case (.failed(let failure), .open(let level, let until)):
            guard let asked = ask(failure.retryAfter, at: now) else { break }
            state = .open(level: level, until: max(until, now.uptime + asked))
        case (.tokenUpdates, .open): break
        case (.failed(let failure), .halfOpen(let level, _)):
            open(level + 1, now, asked: failure.retryAfter, jitter)
        case (.tokenUpdates, .halfOpen(let level, _)): open(level + 1, now, jitter)
        }
    }

    private mutating func note(_ observation: Observation, at now: ClockReading) {
        switch observation {
        case .failed(let failure): lastStatus = failure.status
        case .tokenUpdates: lastStatus = 429
        case .working, .nothing, .credentialRefused: break
        }
        switch observation {
        case .working: nextSingle = nil
        case .credentialRefused: probeFirst(at: now)
        case .failed, .tokenUpdates, .nothing: if nextSingle != nil { probeFirst(at: now) }
        }
    }

    /// Lets only one request start. More follow after a response that does not refuse the credential.
    mutating func probeFirst(at now: ClockReading) { nextSingle = now.uptime }

    mutating func allowance(at now: ClockReading) -> Allowance {
        switch state {
        case .closed:
            guard let next = nextSingle else { return .full }
            guard now.uptime >= next else { return .after(next - now.uptime) }
            nextSingle = now.uptime + Self.probeDeadline
            return .single
        case .open(let level, let until), .halfOpen(let level, let until):
            guard now.uptime >= until else { return .after(until - now.uptime) }
            state = .halfOpen(level: level, until: now.uptime + Self.probeDeadline)
            return .probe
        }
    }

    /// Returns an unused probe, so that the next caller can send it.
    mutating func probeUnused(at now: ClockReading) {
        if nextSingle != nil { probeFirst(at: now) }
        if case .halfOpen(let level, _) = state { state = .open(level: level, until: now.uptime) }
    }

    /// The pause of a breaker that is not closed, by the present wall clock.
    struct Hold: Hashable {
        var since: Timestamp
        /// The status of the last failure. `nil` if it had no response.
        var status: Int?
        var nextTryAt: Timestamp
    }

    /// Opens the breaker for the remaining pause of another process, and then lets a few requests start. The wait is at
    /// most `RetryAfter.waitMax`, whatever the wall clock shows now.
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

    /// Records the pause that a response asks for, and returns its length from now.
    private mutating func ask(_ retryAfter: RetryAfter?, at now: ClockReading) -> Duration? {
        guard let wait = retryAfter?.wait(from: now.wall.milliseconds) else { return nil }
        askedUntil = max(askedUntil, now.uptime + wait)
        return wait
    }

    /// - Parameter asked: the minimum pause that the response asks for.
    private mutating func open(
        _ level: Int, _ now: ClockReading, asked: RetryAfter? = nil, _ jitter: () -> Double
    ) {
        if level > Self.delays.count { downSince = downSince ?? failingSince ?? now.wall }
        let delay = Self.delays[min(level, Self.delays.count) - 1]
        failingSince = failingSince ?? now.wall
        let pause = max(delay + delay * (0.2 * jitter()), ask(asked, at: now) ?? .zero)
        state = .open(level: level, until: now.uptime + pause)
    }
}

extension CircuitBreaker.Observation {
    init(_ row: OutcomePolicy.Row, _ result: PushResult) {
        switch (result, row.decision) {
        case (.notSent, _): self = .nothing
        case (.unknown, _): self = .failure
        case (.cutOff(let status), _): self = .failed(.init(status: status))
        case (.answered(let answer), .retry(.service)), (.answered(let answer), .unknown):
            self = .failed(.init(status: answer.status, retryAfter: answer.retryAfter))
        case (.answered, .retry(.credential)): self = .tokenUpdates
        case (.answered, _): self = row.consequence == .credentialFault ? .credentialRefused : .working
        }
    }
}

/// The ``CircuitBreaker`` of one endpoint, for all runs and lanes that use it.
final class EndpointBreaker: Sendable {
    private struct State {
        var breaker = CircuitBreaker()
        /// Whether the last observation was a TooManyProviderTokenUpdates.
        var wantsFewerTokens = false
        /// Whether this process has had results from the endpoint. The records of other processes are then out of date.
        var hasHeard = false
    }

    let endpoint: String
    private let credential: String?
    private let jitter: @Sendable () -> Double
    private let state = Mutex(State())

    /// - Parameter credential: the description of the credential used there, for a person.
    init(endpoint: String, credential: String? = nil, jitter: @escaping @Sendable () -> Double) {
        self.endpoint = endpoint
        self.credential = credential
        self.jitter = jitter
    }

    func hold(at now: ClockReading) -> CircuitBreaker.Hold? { state.withLock { $0.breaker.hold(at: now) } }

    /// Takes over the pause that the last sender of a run recorded. Does nothing if this process already has results
    /// from the endpoint.
    func takeOver(_ hold: CircuitBreaker.Hold, at now: ClockReading) {
        state.withLock { state in
            if !state.hasHeard { state.breaker.takeOver(hold, at: now) }
        }
    }

    func allowance(at now: ClockReading) -> CircuitBreaker.Allowance {
        state.withLock { $0.breaker.allowance(at: now) }
    }

    func probeUnused(at now: ClockReading) { state.withLock { $0.breaker.probeUnused(at: now) } }

    /// Lets only one request start, to check whether the reason why a run paused itself is gone. Does nothing if this
    /// process already has results from the endpoint.
    func probeFirst(at now: ClockReading) {
        state.withLock { if !$0.hasHeard { $0.breaker.probeFirst(at: now) } }
    }

    /// Records observations. Returns why the runs must stop if the endpoint is down, and whether requests are now no
    /// longer held back.
    func observe(
        _ observations: some Sequence<CircuitBreaker.Observation>, at now: ClockReading
    ) -> (stop: StopReason?, isFreed: Bool) {
        let (downSince, wantsFewerTokens, isFreed) = state.withLock { state in
            let wasHeld = state.breaker.isHeld
            for observation in observations {
                state.breaker.observe(observation, at: now, jitter: jitter)
                guard observation != .nothing else { continue }
                state.hasHeard = true
                state.wantsFewerTokens = observation == .tokenUpdates
            }
            let downSince = state.breaker.downSince
            // The runs stop. Their next start begins with a single request.
            if downSince != nil {
                state.breaker = CircuitBreaker()
                state.breaker.probeFirst(at: now)
            }
            return (downSince, state.wantsFewerTokens, wasHeld && !state.breaker.isHeld)
        }
        return (downSince.map { .unreachable(summary(since: $0, wantsFewerTokens: wantsFewerTokens)) }, isFreed)
    }

    private func summary(since moment: Timestamp, wantsFewerTokens: Bool) -> String {
        guard wantsFewerTokens else {
            return "\(endpoint) has responded only with errors, or not at all, since \(moment.iso8601); check "
                + "Apple's system status page and the network, then run the same command again"
        }
        return "\(endpoint) has refused every request since \(moment.iso8601), last with TooManyProviderTokenUpdates: "
            + "another program also signs provider tokens with \(credential ?? "the same key"); let one store send "
            + "with it, and run the same command again after 20 minutes"
    }
}
