/// Decides for one lane what starts, and when a connection is opened, widened, probed, retired and replaced, when the
/// lane holds off after failures, drains, and gives up (`ProviderProtocol` section 8). Both transports carry out what
/// it says.
///
/// A plain value: it knows no socket, no thread and no clock. What happens is told by its mutating methods; what to do
/// is asked of ``next(_:queued:unanswered:)`` until that says to wait, for events come where nothing can be done about
/// them, in the middle of a library's callbacks. `now` is nanoseconds of the loop's clock, the same throughout a round.
///
/// Read before you judge: a deadline for the peer is compared with `readUntil`, the moment up to which everything was
/// read that had come, never with `now`.
///
/// A lane runs, and then drains: when it is stopped, or when it fails for good.
struct LaneStateMachine {
    typealias ConnectionID = Int

    enum Action: Equatable {
        /// Make a connection of this name; ``opened(_:streamLimit:at:)`` or ``openFailed(_:_:isFinal:at:)`` follows.
        case open(ConnectionID)
        /// Start queued pushes; ``started(_:on:)`` follows.
        case start(atMost: Int, on: ConnectionID)
        case ping(ConnectionID)
        /// Nothing is open on it any more: say goodbye.
        case close(ConnectionID)
        /// End it at once, with what is open on it.
        case abort(ConnectionID, AbortReason)
        /// Nothing to do before, unless something happens; `.max`: not by itself.
        case wait(until: UInt64)
        /// The lane is over.
        case end
    }

    enum AbortReason: Equatable {
        /// It did not answer PING.
        case silent
        /// More connections than ``retiringMax`` are retiring, and this is the oldest.
        case crowded
    }

    /// What followed from an event, for the log.
    enum Consequence: Equatable {
        case goOn
        /// Nothing more starts on the connection; another one is opened.
        case retired
        /// As `retired`, and the next one has to wait; `failures` in a row so far.
        case heldOff(failures: Int)
        case gaveUp
    }

    /// What a transport can see and do.
    struct Traits {
        /// The peer's SETTINGS are known as they come.
        var seesSettings: Bool
        var sendsPing: Bool
    }

    private static let retiringMax = 4
    /// A gate that nobody opened opens in seconds, if at all.
    private static let lookAgainAfter: UInt64 = 20_000_000
    /// APNs wants a pause after TooManyProviderTokenUpdates (`ProviderProtocol` section 3).
    private static let tokenUpdatePause: UInt64 = 30_000_000_000
    /// Streams refused in a row that cost a connection.
    private static let refusalsMax = 8

    private let endpoint: PushEndpoint
    private let limits: LaneLimits
    private let backOff: ConnectBackOff
    private let traits: Traits

    private var connections: [ConnectionState] = []
    private var lastID = 0
    /// No request and no connection starts before.
    private var holdUntil: UInt64 = 0
    /// Opening and closing fast counts as an attack: no connection is opened before.
    private var openNotBefore: UInt64 = 0
    /// Connections in a row that gave no answer.
    private(set) var failures = 0
    private var refusals = 0
    private var hasEverAnswered = false
    private var isFinished = false
    /// Set by a stop or a failure: nothing starts any more, and then waiting for answers ends.
    private var drainUntil: UInt64?
    /// Why the lane can do no more work.
    private(set) var failure: TransportError?

    init(endpoint: PushEndpoint, limits: LaneLimits, backOff: ConnectBackOff, traits: Traits) {
        self.endpoint = endpoint
        self.limits = limits
        self.backOff = backOff
        self.traits = traits
    }

    /// What the peer and our own limit allow at once.
    func streamLimit(at now: UInt64) -> Int {
        current.map { max(1, connections[$0].streamLimit(limits.streamsMax, at: now)) } ?? 1
    }

    func isCurrent(_ id: ConnectionID) -> Bool { current.map { connections[$0].id == id } ?? false }
}

// MARK: What to do

extension LaneStateMachine {
    /// - Parameters:
    ///   - readUntil: everything that had come by this moment has been read; no later than `now`.
    ///   - queued: pushes that wait to be started.
    ///   - unanswered: pushes that were started and have no response.
    mutating func next(_ now: UInt64, readUntil: UInt64, queued: Int, unanswered: Int) -> Action {
        if let action = probe(now, readUntil) { return action }
        if drainUntil == nil {
            if let due = openDue(queued, unanswered), now >= due { return open(now) }
            if queued > 0, now >= holdUntil, let index = current {
                let room = room(on: connections[index], now)
                if room > 0 { return .start(atMost: min(room, queued), on: connections[index].id) }
            }
            checkStall(now, readUntil, queued)
        }
        if let action = endRetired() { return action }
        if isOver(readUntil, queued, unanswered) { return .end }
        return .wait(until: due(now, readUntil, queued, unanswered))
    }

    /// Without PING missed deadlines are the only sign of a silent connection: while others are waited for there,
    /// nothing more is started that would miss their deadlines, too.
    private func room(on connection: ConnectionState, _ now: UInt64) -> Int {
        if !traits.sendsPing, connection.missedDeadlines > 0, connection.openStreams > 0 { return 0 }
        return connection.streamLimit(limits.streamsMax, at: now) - connection.openStreams
    }

    private mutating func open(_ now: UInt64) -> Action {
        lastID += 1
        openNotBefore = now + backOff.delay(afterFailures: 1).nanoseconds
        connections.append(ConnectionState(id: lastID, warmUp: WarmUp(seesSettings: traits.seesSettings)))
        return .open(lastID)
    }

    /// When the next connection may be begun; nil where none is wanted.
    private func openDue(_ queued: Int, _ unanswered: Int) -> UInt64? {
        let isWanted = queued > 0 || unanswered > 0 && !isFinished
        guard drainUntil == nil, isWanted, !connections.contains(where: { $0.stage != .retiring }) else { return nil }
        return max(holdUntil, openNotBefore)
    }

    private mutating func probe(_ now: UInt64, _ readUntil: UInt64) -> Action? {
        guard traits.sendsPing else { return nil }
        for index in connections.indices where !connections[index].isEnding {
            let isBusy = connections[index].openStreams > 0
            connections[index].liveness?.isBusy(isBusy, at: now)
            switch connections[index].liveness?.action(at: readUntil) {
            case .wait, nil: continue
            case .ping:
                connections[index].liveness?.pinged(at: now)
                return .ping(connections[index].id)
            case .giveUp:
                connections[index].isEnding = true
                return .abort(connections[index].id, .silent)
            }
        }
        return nil
    }

    /// A peer that allows no stream for as long as a request may take is of no use.
    private mutating func checkStall(_ now: UInt64, _ readUntil: UInt64, _ queued: Int) {
        guard let index = current else { return }
        let isStalled =
            queued > 0 && connections[index].openStreams == 0
            && connections[index].streamLimit(limits.streamsMax, at: now) == 0
        guard isStalled else {
            connections[index].stalledSince = nil
            return
        }
        let since = connections[index].stalledSince ?? now
        connections[index].stalledSince = since
        guard readUntil >= since + limits.requestDeadline.nanoseconds else { return }
        attemptFailed(.unreachable(endpoint, reason: "it allows no stream"), now)
    }

    private mutating func endRetired() -> Action? {
        var retiring = 0
        for index in connections.indices.reversed() where connections[index].stage == .retiring {
            guard !connections[index].isEnding else { continue }
            retiring += 1
            if connections[index].openStreams == 0 || retiring > Self.retiringMax {
                connections[index].isEnding = true
                let id = connections[index].id
                return connections[index].openStreams == 0 ? .close(id) : .abort(id, .crowded)
            }
        }
        return nil
    }

    private func isOver(_ readUntil: UInt64, _ queued: Int, _ unanswered: Int) -> Bool {
        if let drainUntil { return unanswered == 0 || readUntil >= drainUntil }
        return isFinished && queued == 0 && unanswered == 0
    }

    /// The nearest moment at which something is to be done without an event.
    private func due(_ now: UInt64, _ readUntil: UInt64, _ queued: Int, _ unanswered: Int) -> UInt64 {
        var due = drainUntil ?? openDue(queued, unanswered) ?? .max
        if drainUntil == nil, queued > 0, holdUntil > now { due = min(due, holdUntil) }
        for connection in connections where !connection.isEnding {
            if case .wait(let until) = connection.liveness?.action(at: readUntil) { due = min(due, until) }
            if let since = connection.stalledSince { due = min(due, since + limits.requestDeadline.nanoseconds) }
            if connection.warmUp.isSettling(at: now) { due = min(due, now + 1_000_000) }
        }
        return due
    }
}

// MARK: What happens to the lane

extension LaneStateMachine {
    /// No more pushes will come.
    mutating func finish() {
        isFinished = true
    }

    /// Nothing starts before, for there is nothing to prove who we are with.
    mutating func hold(until moment: UInt64) {
        holdUntil = max(holdUntil, moment)
    }

    /// Nothing more starts; what is under way may be answered within the drain limit.
    mutating func stop(at now: UInt64) {
        drainUntil = drainUntil ?? now + limits.drainLimit.nanoseconds
    }

    /// What is queued must wait, nobody can say until when: it is looked at again shortly.
    mutating func hold(at now: UInt64) {
        holdUntil = max(holdUntil, now + Self.lookAgainAfter)
    }

    /// The lane can do no more work, and stops. Only the first failure counts.
    mutating func fail(_ error: TransportError, at now: UInt64) {
        failure = failure ?? error
        stop(at: now)
    }
}

// MARK: What happens to a connection

extension LaneStateMachine {
    /// Requests may start on it; `streamLimit`: by the peer's SETTINGS, or `.max` where they are not seen.
    mutating func opened(_ id: ConnectionID, streamLimit: Int, at now: UInt64) {
        guard let index = index(of: id), connections[index].stage == .opening else { return }
        retireCurrent()
        connections[index].stage = .current
        connections[index].peerStreamsMax = streamLimit
        if traits.sendsPing { connections[index].liveness = Liveness(limits, now: now) }
    }

    /// It never stood. `isFinal`: another attempt would end no better.
    @discardableResult
    mutating func openFailed(
        _ id: ConnectionID, _ error: TransportError, isFinal: Bool, at now: UInt64
    ) -> Consequence {
        guard let index = index(of: id), connections[index].stage != .retiring else { return .goOn }
        if connections[index].stage == .opening { connections.remove(at: index) }
        guard isFinal else { return attemptFailed(error, now) }
        fail(error, at: now)
        return .gaveUp
    }

    /// Bytes came, of whatever kind.
    mutating func heard(_ id: ConnectionID, streamLimit: Int, at now: UInt64) {
        guard let index = index(of: id) else { return }
        connections[index].liveness?.heard(at: now)
        connections[index].peerStreamsMax = streamLimit
    }

    /// The transport makes it anew by itself: whatever was known of it is over.
    mutating func reconnected(_ id: ConnectionID, at now: UInt64) {
        guard let index = index(of: id) else { return }
        openNotBefore = now + backOff.delay(afterFailures: 1).nanoseconds
        connections[index].warmUp.coolDown()
        connections[index].responses = 0
        connections[index].missedDeadlines = 0
    }

    /// Nothing more can be started on it: its stream ids are used up.
    mutating func exhausted(_ id: ConnectionID) {
        if isCurrent(id) { retireCurrent() }
    }

    /// The peer takes no new requests on it. `isEnhanceYourCalm`: it says that we do too much.
    @discardableResult
    mutating func goingAway(
        _ id: ConnectionID, _ error: TransportError, isEnhanceYourCalm: Bool, at now: UInt64
    ) -> Consequence {
        guard isCurrent(id) else { return .goOn }
        let consequence = isEnhanceYourCalm ? attemptFailed(error, now) : lost(error, now)
        retireCurrent()
        return consequence == .goOn ? .retired : consequence
    }

    /// It is no more.
    @discardableResult
    mutating func closed(_ id: ConnectionID, _ error: TransportError, at now: UInt64) -> Consequence {
        guard let index = index(of: id) else { return .goOn }
        let consequence = connections[index].stage == .current ? lost(error, now) : .goOn
        connections.removeAll { $0.id == id }
        return consequence
    }
}

// MARK: What happens to a request

extension LaneStateMachine {
    mutating func started(_ count: Int, on id: ConnectionID) {
        if let index = index(of: id) { connections[index].openStreams += count }
    }

    /// Its stream is over, with or without an answer.
    mutating func ended(on id: ConnectionID) {
        if let index = index(of: id) { connections[index].openStreams -= 1 }
    }

    /// - Parameter id: nil where the connection it came on was replaced meanwhile.
    mutating func answered(_ answer: PushResponse, on id: ConnectionID?, at now: UInt64) {
        if answer.reason == .tooManyProviderTokenUpdates { holdUntil = now + Self.tokenUpdatePause }
        guard let id, let index = index(of: id) else { return }
        connections[index].warmUp.answered(answer, at: now)
        guard connections[index].stage == .current else { return }
        connections[index].responses += 1
        connections[index].missedDeadlines = 0
        hasEverAnswered = true
        failures = 0
        refusals = 0
        if answer.retiresConnection { retireCurrent() }
    }

    /// The peer did not take it: what we believe of its limit is wrong, and requests go one at a time until it accepts
    /// again.
    @discardableResult
    mutating func refused(on id: ConnectionID, at now: UInt64) -> Consequence {
        guard let index = current, connections[index].id == id else { return .goOn }
        connections[index].warmUp.coolDown()
        refusals += 1
        guard refusals >= Self.refusalsMax else { return .goOn }
        refusals = 0
        return attemptFailed(.unreachable(endpoint, reason: "it refuses every stream"), now)
    }

    /// Misses in a row retire a connection; before its first answer one is as good as no connection.
    @discardableResult
    mutating func missedDeadline(on id: ConnectionID, at now: UInt64) -> Consequence {
        guard failure == nil, let index = current, connections[index].id == id else { return .goOn }
        connections[index].missedDeadlines += 1
        guard connections[index].responses > 0 else {
            return attemptFailed(.unreachable(endpoint, reason: "no answer within \(limits.requestDeadline)"), now)
        }
        guard connections[index].missedDeadlines >= max(1, limits.missedDeadlinesMax) else { return .goOn }
        retireCurrent()
        return .retired
    }

    /// It ended without an answer, and its connection may have, too: the transport finds out with the next request,
    /// which opens another one and therefore waits as an opening does.
    @discardableResult
    mutating func lost(on id: ConnectionID, _ error: TransportError, at now: UInt64) -> Consequence {
        guard let index = current, connections[index].id == id else { return .goOn }
        connections[index].warmUp.coolDown()
        let consequence = lost(error, now)
        if consequence == .goOn { holdUntil = max(holdUntil, openNotBefore) }
        return consequence
    }
}

extension LaneStateMachine {
    private var current: Int? { connections.lastIndex { $0.stage == .current } }

    private func index(of id: ConnectionID) -> Int? { connections.lastIndex { $0.id == id } }

    private mutating func retireCurrent() {
        if let index = current { connections[index].stage = .retiring }
    }

    /// The current connection may be gone: one that ends before its first answer is as good as none.
    private mutating func lost(_ error: TransportError, _ now: UInt64) -> Consequence {
        guard let index = current, connections[index].responses == 0 else { return .goOn }
        return attemptFailed(error, now)
    }

    /// Many requests may report the end of one connection: only the first counts, for then it is current no longer.
    @discardableResult
    private mutating func attemptFailed(_ error: TransportError, _ now: UInt64) -> Consequence {
        guard failure == nil else { return .goOn }
        retireCurrent()
        failures += 1
        let attemptsMax = max(1, limits.connectAttemptsMax)
        if failures >= (hasEverAnswered ? max(attemptsMax, limits.reconnectAttemptsMax) : attemptsMax) {
            fail(error, at: now)
            return .gaveUp
        }
        holdUntil = now + backOff.delay(afterFailures: failures).nanoseconds
        return .heldOff(failures: failures)
    }
}
