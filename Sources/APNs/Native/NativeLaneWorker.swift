import Glibc
import HTTP2
import Logging

/// The work of a native lane: takes batches, keeps as many requests on the wire as the connection allows, gathers
/// responses, replaces connections. Made, used and dropped on the lane's thread; only mailbox and doorbell are shared.
final class NativeLaneWorker {
    /// Responses are handed over when so many are ready, or the first has waited so long, or nothing else is to do.
    static let publishCount = 256
    static let publishAfterNanoseconds: UInt64 = 20_000_000

    let plan: LanePlan
    let connections: ClientConnections
    let loop: EventLoop
    private let mailbox: LaneMailbox
    private let doorbell: Doorbell

    var queue = BatchQueue()
    var slots: [PushSlot] = []
    var free: [Int] = []
    /// Pushes started and without a response.
    var pending = 0
    /// Where requests start.
    var current: NativeConnection?
    /// On its way to become the current one.
    var candidate: NativeConnection?
    /// Start nothing more, and may still answer.
    var retiring: [NativeConnection] = []
    var health: ConnectionHealth
    /// Set when the lane can do no more work.
    var failure: TransportError? {
        didSet { if oldValue == nil, failure != nil { stop() } }
    }
    /// No request and no connection starts before.
    var holdUntil: UInt64 = 0
    /// When the last connection was begun.
    var connectedAt: UInt64?
    var connects = 0
    /// Streams refused in a row.
    var refusals = 0
    var goAway: String?
    /// Laid out last: the next batch mostly has the same headers.
    var lastBatch: QueuedBatch?

    private var ready: [PushResponse] = []
    private var readySince: UInt64 = 0
    private var isFinished = false
    /// Set on cancellation and failure: nothing starts any more, and then waiting for answers ends.
    private(set) var drainUntil: UInt64?
    private var isPumping = false
    private var isOver = false
    private var timerDue: UInt64?

    private init(
        _ plan: LanePlan, _ connections: ClientConnections, _ mailbox: LaneMailbox, _ doorbell: Doorbell,
        _ loop: EventLoop
    ) {
        self.plan = plan
        self.connections = connections
        self.mailbox = mailbox
        self.doorbell = doorbell
        self.loop = loop
        health = ConnectionHealth(plan.limits)
    }

    /// Every push taken has its response in the mailbox when this returns, but for those the mailbox still queues.
    static func work(
        _ plan: LanePlan, _ connections: ClientConnections, _ mailbox: LaneMailbox, _ doorbell: Doorbell
    ) -> Result<Void, TransportError> {
        do throws(EventLoopError) {
            let loop = try EventLoop(named: plan.name)
            let worker = NativeLaneWorker(plan, connections, mailbox, doorbell, loop)
            guard loop.watch(doorbell.file, for: .readable, worker) else { throw .noDescriptor(code: errno) }
            loop.run()
            return worker.failure.map { .failure($0) } ?? .success(())
        } catch {
            return .failure(.unreachable(plan.endpoint, reason: error.description))
        }
    }

    /// Does all there is to do now, and arranges to be called again. Never inside nghttp2.
    func pump() {
        guard !isPumping, !isOver else { return }
        isPumping = true
        defer { isPumping = false }
        let now = loop.roundStart
        checkDeadlines(now)
        checkLiveness(now)
        if drainUntil == nil {
            startRequests(now)
            checkStall(now)
        }
        closeRetired()
        publishIfDue(now)
        if isDone(now) { finish() } else { schedule(now) }
    }

    func respond(_ tag: Int64, _ result: PushResult, latencyMicroseconds: Int64 = 0) {
        if ready.isEmpty { readySince = loop.roundStart }
        ready.append(PushResponse(tag: tag, result: result, latencyMicroseconds: latencyMicroseconds))
    }

    var hasMoreToCome: Bool { !isFinished && drainUntil == nil }

    private func stop() {
        drainUntil = drainUntil ?? loop.roundStart + plan.limits.drainLimit.nanoseconds
    }

    private func isDone(_ now: UInt64) -> Bool {
        if let drainUntil { return pending == 0 || now >= drainUntil }
        return pending == 0 && isFinished && queue.count == 0
    }

    private func publishIfDue(_ now: UInt64) {
        let isWaitedFor = !ready.isEmpty && now >= readySince + Self.publishAfterNanoseconds
        if ready.count >= Self.publishCount || pending == 0 || isWaitedFor { publish() }
    }

    private func publish() {
        var status = LaneStatus()
        status.inFlight = pending
        status.queued = queue.count
        status.streamLimit = max(1, current?.streamLimit(plan.limits.streamsMax) ?? 1)
        status.connects = connects
        status.goAway = goAway
        status.connectFailures = health.failures
        mailbox.publish(&ready, status: status)
    }

    /// What is still on the wire stays unanswered, what was not written is given back.
    private func finish() {
        isOver = true
        let fault = failure?.faultOfUnsent ?? .stopped
        for slot in slots {
            guard let tag = slot.entry?.tag else { continue }
            let lost = failure.map { TransportFault.connectionLost($0.description) } ?? .deadline
            respond(tag, slot.request.isWritten ? .unknown(lost) : .notSent(fault))
            slot.clear()
            pending -= 1
        }
        while let entry = queue.next() { respond(entry.tag, .notSent(fault)) }
        publish()
        candidate?.client.abort(.local)
        for connection in retiring + (current.map { [$0] } ?? []) { connection.client.goodbye() }
        loop.end()
    }
}

// MARK: Events

extension NativeLaneWorker: EventHandler, TimerTarget {
    /// The doorbell.
    func ready(_ readiness: Readiness) {
        doorbell.silence()
        let orders = mailbox.takeOrders()
        if !orders.batches.isEmpty { queue.append(orders.batches) }
        isFinished = orders.isFinished
        if orders.isCancelled { stop() }
        pump()
    }

    func roundEnded() {}

    func abandon() {}

    func timerFired(_ tag: Int64) {
        timerDue = nil
        pump()
    }

    /// The nearest moment at which something is due without an event.
    private func schedule(_ now: UInt64) {
        var due = UInt64.max
        if !ready.isEmpty { due = min(due, readySince + Self.publishAfterNanoseconds) }
        if let drainUntil { due = min(due, drainUntil) }
        if let connectDue = connectDue(now) { due = min(due, connectDue) }
        for connection in living { due = min(due, nextDue(connection, now)) }
        guard due < timerDue ?? .max else { return }
        timerDue = due
        // Rounded up: a timer that comes a moment early would only be started again.
        let milliseconds = due > now ? (due - now + 999_999) / 1_000_000 : 0
        loop.schedule(afterMilliseconds: Int(milliseconds), target: self, tag: 0)
    }
}
