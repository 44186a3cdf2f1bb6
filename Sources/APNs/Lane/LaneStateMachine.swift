import Platform

/// The decisions of one lane (`ProviderProtocol` section 8). It decides which requests start, and when connections are
/// opened, widened, probed, retired and replaced. It also decides when the lane backs off after failures, drains, and
/// gives up. Both transports carry out its decisions.
///
/// It is a plain value with no socket, thread or clock. Its mutating methods record events. Call
/// ``next(_:readUntil:queued:unanswered:)`` until it returns `wait` or `end`. Events may arrive inside a library's
/// callbacks, where no action is possible. `now` is nanoseconds of the loop's clock, constant throughout a round.
///
/// A deadline for the peer is compared with `readUntil`, never with `now`. `readUntil` is the moment up to which all
/// arrived data was read.
///
/// A lane runs, and then drains after a stop or a permanent failure.
struct LaneStateMachine {
    typealias ConnectionID = Int

    enum Action: Equatable {
        /// Create a connection with this id. ``opened(_:streamLimit:at:)`` or ``openFailed(_:_:isFinal:at:)`` follows.
        case open(ConnectionID)
        /// Start queued pushes. ``started(_:on:)`` follows.
        case start(atMost: Int, on: ConnectionID)
        case ping(ConnectionID)
        /// Close a connection that has no open streams.
        case close(ConnectionID)
        /// End a connection immediately, together with its open streams.
        case abort(ConnectionID, AbortReason)
        /// Wait until this time or the next event. `.max` means that only an event ends the wait.
        case wait(until: UInt64)
        /// The lane has ended.
        case end
    }

    enum AbortReason: Equatable {
        /// The connection did not respond to PING.
        case silent
        /// More than ``retiringMax`` connections are retiring, and this is the oldest.
        case crowded
    }

    /// The consequence of an event, for the log.
    enum Consequence: Equatable {
        case goOn
        /// Nothing more starts on the connection, and another one is opened.
        case retired
        /// The connection is retired, and the next one has to wait. `failures` counts the failures in a row.
        case heldOff(failures: Int)
        case gaveUp
    }

    /// The abilities of a transport.
    struct Traits {
        /// Whether the peer's SETTINGS are known on arrival.
        var seesSettings: Bool
        var sendsPing: Bool
    }

    private static let retiringMax = 4
    /// The interval between checks of a gate that has lapsed. Such a gate usually opens again within seconds.
    private static let lookAgainAfter: UInt64 = 20_000_000
    /// The pause that APNs requires after TooManyProviderTokenUpdates (`ProviderProtocol` section 3).
    private static let tokenUpdatePause: UInt64 = 30_000_000_000
    /// The number of refused streams in a row after which the connection is replaced.
    private static let refusalsMax = 8

    private let endpoint: PushEndpoint
    private let limits: LaneLimits
    private let backOff: Backoff
    private let traits: Traits

    private var connections: [ConnectionState] = []
    private var lastID = 0
    /// The time before which no request and no connection starts.
    private var holdUntil: UInt64 = 0
    /// The time before which no connection is opened. APNs treats rapid reconnects as an attack.
    private var openNotBefore: UInt64 = 0
    /// The number of failed attempts in a row. A response resets it.
    private(set) var failures = 0
    private var refusals = 0
    private var hasEverAnswered = false
    private var isFinished = false
    /// The end of the wait for responses after a stop or a failure. Nothing starts once it is set.
    private var drainUntil: UInt64?
    /// The reason why the lane can do no more work.
    private(set) var failure: TransportError?

    init(endpoint: PushEndpoint, limits: LaneLimits, backOff: Backoff, traits: Traits) {
        self.endpoint = endpoint
        self.limits = limits
        self.backOff = backOff
        self.traits = traits
    }

    /// Returns the number of streams that the peer and Fanfare's own limit allow, at least 1.
    func streamLimit(at now: UInt64) -> Int {
        current.map { max(1, connections[$0].streamLimit(limits.streamsMax, at: now)) } ?? 1
    }

    func isCurrent(_ id: ConnectionID) -> Bool { current.map { connections[$0].id == id } ?? false }
}

// MARK: The next action

extension LaneStateMachine {
    /// - Parameters:
    ///   - readUntil: the moment up to which all arrived data has been read. It is no later than `now`.
    ///   - queued: the number of pushes that wait to be started.
    ///   - unanswered: the number of started pushes without a response.
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

    /// Returns the number of requests that may start. Without PING, a missed deadline is the only sign of a dead
    /// connection: no request then starts while others wait there, because it would probably miss its deadline too.
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

    /// Returns the time at which the next connection may be opened, or `nil` if none is wanted.
    private func openDue(_ queued: Int, _ unanswered: Int) -> UInt64? {
        let isWanted = queued > 0 || unanswered > 0 && !isFinished
        guard drainUntil == nil, isWanted, !connections.contains(where: { $0.phase != .retiring }) else { return nil }
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

    /// Counts a failed attempt if the peer has allowed no stream for ``LaneLimits/requestDeadline``.
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
        for index in connections.indices.reversed() where connections[index].phase == .retiring {
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

    /// Returns the time of the next action that needs no event.
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

// MARK: Events of the lane

extension LaneStateMachine {
    /// Records that no more pushes will come.
    mutating func finish() {
        isFinished = true
    }

    /// Delays all starts, because no provider token is available.
    mutating func hold(until moment: UInt64) {
        holdUntil = max(holdUntil, moment)
    }

    /// Stops starting requests. Requests in flight may get their responses within the drain limit.
    mutating func stop(at now: UInt64) {
        drainUntil = drainUntil ?? now + limits.drainLimit.nanoseconds
    }

    /// Delays all starts, because a gate has lapsed. The gate is checked again after ``lookAgainAfter``.
    mutating func hold(at now: UInt64) {
        holdUntil = max(holdUntil, now + Self.lookAgainAfter)
    }

    /// Records a failure that ends the lane's work, and stops. Only the first failure counts.
    mutating func fail(_ error: TransportError, at now: UInt64) {
        failure = failure ?? error
        stop(at: now)
    }
}

// MARK: Events of a connection

extension LaneStateMachine {
    /// Records that requests may start on it. `streamLimit` is from the peer's SETTINGS, or `.max` if unseen.
    mutating func opened(_ id: ConnectionID, streamLimit: Int, at now: UInt64) {
        guard let index = index(of: id), connections[index].phase == .opening else { return }
        retireCurrent()
        connections[index].phase = .current
        connections[index].peerStreamsMax = streamLimit
        if traits.sendsPing { connections[index].liveness = Liveness(limits, now: now) }
    }

    /// Records that a connection cannot be opened or used. `isFinal` means that another attempt would also fail.
    @discardableResult
    mutating func openFailed(
        _ id: ConnectionID, _ error: TransportError, isFinal: Bool, at now: UInt64
    ) -> Consequence {
        guard let index = index(of: id), connections[index].phase != .retiring else { return .goOn }
        if connections[index].phase == .opening { connections.remove(at: index) }
        guard isFinal else { return attemptFailed(error, now) }
        fail(error, at: now)
        return .gaveUp
    }

    /// Records that bytes of any kind arrived.
    mutating func heard(_ id: ConnectionID, streamLimit: Int, at now: UInt64) {
        guard let index = index(of: id) else { return }
        connections[index].liveness?.heard(at: now)
        connections[index].peerStreamsMax = streamLimit
    }

    /// Records that the transport reconnects automatically, which resets all knowledge about the connection.
    mutating func reconnected(_ id: ConnectionID, at now: UInt64) {
        guard let index = index(of: id) else { return }
        openNotBefore = now + backOff.delay(afterFailures: 1).nanoseconds
        connections[index].warmUp.coolDown()
        connections[index].responses = 0
        connections[index].missedDeadlines = 0
    }

    /// Records that the connection can start nothing more, because its stream ids are used up.
    mutating func exhausted(_ id: ConnectionID) {
        if isCurrent(id) { retireCurrent() }
    }

    /// Records that the peer accepts no new requests on the connection, perhaps because it finds the load too high.
    @discardableResult
    mutating func goingAway(
        _ id: ConnectionID, _ error: TransportError, isEnhanceYourCalm: Bool, at now: UInt64
    ) -> Consequence {
        guard isCurrent(id) else { return .goOn }
        let consequence = isEnhanceYourCalm ? attemptFailed(error, now) : lost(error, now)
        retireCurrent()
        return consequence == .goOn ? .retired : consequence
    }

    /// Records that the connection is closed.
    @discardableResult
    mutating func closed(_ id: ConnectionID, _ error: TransportError, at now: UInt64) -> Consequence {
        guard let index = index(of: id) else { return .goOn }
        let consequence = connections[index].phase == .current ? lost(error, now) : .goOn
        connections.removeAll { $0.id == id }
        return consequence
    }
}

// MARK: Events of a request

extension LaneStateMachine {
    mutating func started(_ count: Int, on id: ConnectionID) {
        if let index = index(of: id) { connections[index].openStreams += count }
    }

    /// Records that the request's stream has ended, with or without a response.
    mutating func ended(on id: ConnectionID) {
        if let index = index(of: id) { connections[index].openStreams -= 1 }
    }

    /// - Parameter id: the connection of the response. `nil` if it was replaced in the meantime.
    mutating func answered(_ answer: PushResponse, on id: ConnectionID?, at now: UInt64) {
        if answer.reason == .tooManyProviderTokenUpdates { holdUntil = max(holdUntil, now + Self.tokenUpdatePause) }
        guard let id, let index = index(of: id) else { return }
        connections[index].warmUp.answered(answer, at: now)
        guard connections[index].phase == .current else { return }
        connections[index].responses += 1
        connections[index].missedDeadlines = 0
        hasEverAnswered = true
        failures = 0
        refusals = 0
        if answer.retiresConnection { retireCurrent() }
    }

    /// Records that the peer refused a request. Requests are then sent one at a time until it accepts one.
    @discardableResult
    mutating func refused(on id: ConnectionID, at now: UInt64) -> Consequence {
        guard let index = current, connections[index].id == id else { return .goOn }
        connections[index].warmUp.coolDown()
        refusals += 1
        guard refusals >= Self.refusalsMax else { return .goOn }
        refusals = 0
        return attemptFailed(.unreachable(endpoint, reason: "it refuses every stream"), now)
    }

    /// Records a missed deadline. Several in a row retire a connection. Before the first response, one counts as a
    /// failed connect.
    @discardableResult
    mutating func missedDeadline(on id: ConnectionID, at now: UInt64) -> Consequence {
        guard failure == nil, let index = current, connections[index].id == id else { return .goOn }
        connections[index].missedDeadlines += 1
        guard connections[index].responses > 0 else {
            return attemptFailed(.unreachable(endpoint, reason: "no response within \(limits.requestDeadline)"), now)
        }
        guard connections[index].missedDeadlines >= max(1, limits.missedDeadlinesMax) else { return .goOn }
        retireCurrent()
        return .retired
    }

    /// Records a request that ended without a response. Its connection may also have ended. The next request may
    /// therefore open another connection, so it waits as long as an opening would.
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
    private var current: Int? { connections.lastIndex { $0.phase == .current } }

    private func index(of id: ConnectionID) -> Int? { connections.lastIndex { $0.id == id } }

    private mutating func retireCurrent() {
        if let index = current { connections[index].phase = .retiring }
    }

    /// Handles a possible end of the current connection. An end before the first response counts as a failed connect.
    private mutating func lost(_ error: TransportError, _ now: UInt64) -> Consequence {
        guard let index = current, connections[index].responses == 0 else { return .goOn }
        return attemptFailed(error, now)
    }

    /// Records a failed connect. Many requests may report the end of one connection. Only the first report counts,
    /// because the connection is then no longer current.
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
        holdUntil = max(holdUntil, now + backOff.delay(afterFailures: failures).nanoseconds)
        return .heldOff(failures: failures)
    }
}
