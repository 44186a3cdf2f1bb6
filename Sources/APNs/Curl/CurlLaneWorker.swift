import CCurl
import Logging

/// The loop of a lane: takes batches, keeps as many requests on the wire as the connection's state allows, gathers
/// responses. Made, used and dropped on the lane's thread; only the mailbox and the doorbell are shared.
final class CurlLaneWorker {
    /// Responses are handed over when so many are ready, or the first has waited so long, or nothing else is to do.
    static let publishCount = 256
    static let publishAfter: Duration = .milliseconds(20)
    private static let idleWaitMs: Int64 = 60_000

    let plan: LanePlan
    let sockets: SocketLog
    private let mailbox: LaneMailbox
    let doorbell: Doorbell

    var queue = BatchQueue()
    var slots = SlotPool()
    var warmth = Warmth()
    var health: ConnectionHealth
    var connection: CurlConnection?
    /// Set when the lane can do no more work.
    var failure: TransportError?
    /// The connection is replaced when nothing is in flight any more.
    var isRetiring = false
    /// No request starts before.
    var holdUntil = MonotonicTime.now
    var connects = 0
    var socketsSeen = 0
    /// When the last socket was opened.
    var openedAt: MonotonicTime?
    var chain: HeaderChain?

    private var ready: [PushResponse] = []
    private var readySince = MonotonicTime.now
    private var nextSweep = MonotonicTime.now
    private var isFinished = false
    /// Set on cancellation: when waiting for answers ends.
    private var drainUntil: MonotonicTime?

    init(plan: LanePlan, mailbox: LaneMailbox, doorbell: Doorbell) {
        self.plan = plan
        self.mailbox = mailbox
        self.doorbell = doorbell
        sockets = SocketLog(unacknowledgedMax: plan.limits.requestDeadline)
        health = ConnectionHealth(plan.limits)
    }

    /// Every push taken has its response in the mailbox when this returns, but for those the mailbox still queues.
    func work() -> Result<Void, TransportError> {
        while failure == nil {
            let now = MonotonicTime.now
            takeOrders(now)
            sweepDeadlines(now)
            if slots.inFlight.isEmpty, isDone { break }
            if let drainUntil, now >= drainUntil { break }
            if drainUntil == nil { startRequests(now) }
            publishIfDue(now)
            guard failure == nil, let connection = openedConnection() else { break }
            connection.poll(atMost: waitMilliseconds(now))
            warmth.polled()
            noteNewSockets()
            while let (handle, code) = connection.nextCompletion() { settle(handle, code) }
        }
        abandonRequests()
        abandonQueue()
        publish()
        return failure.map { .failure($0) } ?? .success(())
    }

    func respond(_ tag: Int64, _ result: PushResult, latencyMicroseconds: Int64 = 0) {
        if ready.isEmpty { readySince = .now }
        ready.append(PushResponse(tag: tag, result: result, latencyMicroseconds: latencyMicroseconds))
    }

    private var isDone: Bool { drainUntil != nil || isFinished && queue.count == 0 }

    private func takeOrders(_ now: MonotonicTime) {
        let orders = mailbox.takeOrders()
        if !orders.batches.isEmpty { queue.append(orders.batches) }
        isFinished = orders.isFinished
        if orders.isCancelled, drainUntil == nil { drainUntil = now + plan.limits.drainLimit }
    }

    /// libcurl's own deadline misses requests that wait for a stream, and costs a timer per request.
    private func sweepDeadlines(_ now: MonotonicTime) {
        guard now >= nextSweep else { return }
        nextSweep = now + sweepInterval
        // A copy: settling takes slots out.
        for slot in slots.inFlight where now >= slot.startedAt + plan.limits.requestDeadline {
            settle(slot.handle, CURLE_OPERATION_TIMEDOUT)
        }
    }

    private var sweepInterval: Duration { min(.seconds(1), plan.limits.requestDeadline / 4) }

    private func publishIfDue(_ now: MonotonicTime) {
        let isIdle = slots.inFlight.isEmpty
        if ready.count >= Self.publishCount || isIdle || !ready.isEmpty && now >= readySince + Self.publishAfter {
            publish()
        }
    }

    private func publish() {
        var status = LaneStatus()
        status.inFlight = slots.inFlight.count
        status.queued = queue.count
        status.streamLimit = max(1, warmth.streamLimit(whenWide: plan.curlStreamsMax))
        status.connects = connects
        status.connectFailures = health.failures
        mailbox.publish(&ready, status: status)
    }

    private func waitMilliseconds(_ now: MonotonicTime) -> Int64 {
        var wait = Self.idleWaitMs
        if warmth.isSettling { wait = 1 }
        if !slots.inFlight.isEmpty { wait = min(wait, nextSweep.millisecondsLeft(at: now)) }
        if !ready.isEmpty { wait = min(wait, (readySince + Self.publishAfter).millisecondsLeft(at: now)) }
        if queue.count > 0, holdUntil > now { wait = min(wait, holdUntil.millisecondsLeft(at: now)) }
        if let drainUntil { wait = min(wait, drainUntil.millisecondsLeft(at: now)) }
        return wait
    }

    /// At the end: what is still on the wire stays unanswered.
    private func abandonRequests() {
        for slot in slots.inFlight {
            connection?.remove(slot)
            if let tag = slot.entry?.push.tag { respond(tag, resultWhenAbandoned(slot)) }
            slots.giveBack(slot)
        }
        connection = nil
    }

    private func resultWhenAbandoned(_ slot: CurlSlot) -> PushResult {
        guard slot.isWritten else { return .notSent(failure?.faultOfUnsent ?? .stopped) }
        return .unknown(failure.map { .connectionLost($0.description) } ?? .deadline)
    }

    private func abandonQueue() {
        let fault = failure?.faultOfUnsent ?? .stopped
        while let entry = queue.next() { respond(entry.push.tag, .notSent(fault)) }
    }
}
