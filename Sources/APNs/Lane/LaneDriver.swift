import Glibc
import HTTP2
import Logging

/// The loop of a lane: takes batches, does what ``LaneStateMachine`` says by the connections of its transport, gathers
/// completions. Made, used and dropped on the lane's thread; only mailbox and doorbell are shared.
final class LaneDriver<Connection: LaneConnection> {
    let plan: LanePlan
    let context: Connection.Context
    let loop: EventLoop
    private let mailbox: LaneMailbox
    private let doorbell: Doorbell

    private var machine: LaneStateMachine
    private var queue = BatchQueue()
    private var slots = SlotPool<Connection.Slot>()
    private var connections: [Connection] = []
    private var outbox = CompletionBuffer()
    private var status = LaneStatus()
    /// Laid out last: the next push mostly has the same.
    private var laidOut: (batch: QueuedBatch, tokenGeneration: Int, headers: Connection.Headers)?
    private let events = LoopEvents()
    private var timerDue: UInt64?
    private var stage = Stage.waiting

    /// How soon a provider token on its way is asked for again.
    private static var renewalLook: UInt64 { 20_000_000 }

    private enum Stage {
        /// Goes to `pumping` or `over`.
        case waiting
        /// Goes to `waiting` or `over`.
        case pumping
        case over
    }

    private init(
        _ plan: LanePlan, _ context: Connection.Context, _ mailbox: LaneMailbox, _ doorbell: Doorbell, _ loop: EventLoop
    ) {
        self.plan = plan
        self.context = context
        self.mailbox = mailbox
        self.doorbell = doorbell
        self.loop = loop
        machine = LaneStateMachine(
            endpoint: plan.endpoint, limits: plan.limits, backOff: plan.backOff, traits: Connection.traits)
    }

    /// Every push taken has its response in the mailbox when this returns, but for those the mailbox still queues.
    static func run(
        _ plan: LanePlan, _ context: Connection.Context, _ mailbox: LaneMailbox, _ doorbell: Doorbell
    ) -> Result<Void, TransportError> {
        do throws(EventLoopError) {
            let loop = try EventLoop(named: plan.name, monotonic: plan.monotonic)
            let driver = LaneDriver(plan, context, mailbox, doorbell, loop)
            driver.events.doorbellRang = { driver.takeOrders() }
            driver.events.timeCame = { driver.timerFired() }
            driver.events.roundIsOver = { driver.pump() }
            guard loop.watch(doorbell.file, for: .readable, driver.events) else { throw .noDescriptor(code: errno) }
            loop.run()
            // They refer to the driver, and it to them.
            driver.connections = []
            driver.events.clear()
            return driver.machine.failure.map { .failure($0) } ?? .success(())
        } catch {
            return .failure(.unreachable(plan.endpoint, reason: error.description))
        }
    }

    /// Does all there is to do now, and arranges to be called again. Not to be called inside a library's callbacks.
    func pump() {
        guard case .waiting = stage else { return }
        stage = .pumping
        let now = loop.roundStart
        expireRequests()
        var due = act(now)
        guard case .pumping = stage else { return }
        for connection in connections { due = min(due, connection.attend(now)) }
        publishIfDue(now)
        if let deadline = slots.nextDeadline(plan.limits.requestDeadline.nanoseconds) { due = min(due, deadline) }
        if let publishDue = outbox.due { due = min(due, publishDue) }
        stage = .waiting
        schedule(due)
    }

    /// Until there is nothing to do before the moment it returns.
    private func act(_ now: UInt64) -> UInt64 {
        while true {
            switch machine.next(
                now, readUntil: loop.readUntil, queued: queue.count, unanswered: slots.unanswered)
            {
            case .open(let id): open(id, now)
            case .start(let count, let id): start(atMost: count, on: id, now)
            case .ping(let id): connection(id)?.ping()
            case .close(let id): connection(id)?.close()
            case .abort(let id, .silent):
                connection(id)?.abort("no answer to PING within \(plan.limits.pingDeadline)")
            case .abort(let id, .crowded): connection(id)?.abort("too many connections are ending")
            case .wait(let until): return until
            case .end:
                finish()
                return .max
            }
        }
    }

    private func connection(_ id: Int) -> Connection? { connections.first { $0.id == id } }

    private func schedule(_ due: UInt64) {
        guard due < timerDue ?? .max else { return }
        timerDue = due
        loop.schedule(at: due, target: events, tag: 0)
    }
}

// MARK: Starting

extension LaneDriver {
    private func open(_ id: Int, _ now: UInt64) {
        do throws(TransportError) {
            let connection = try Connection(id: id, driver: self)
            connections.append(connection)
            plan.logger.debug("connecting", metadata: ["endpoint": "\(plan.endpoint)"])
            connection.open()
        } catch {
            machine.fail(error, at: now)
        }
    }

    private func start(atMost count: Int, on id: Int, _ now: UInt64) {
        guard let connection = connection(id) else { return machine.exhausted(id) }
        var started = 0
        defer { machine.started(started, on: id) }
        do {
            let token = try plan.credential.token()
            while started < count, queue.count > 0 {
                let slot = try takeSlot()
                guard let entry = nextToStart() else { return slots.giveBack(slot) }
                entry.started()
                slot.hold(entry, on: id, tokenGeneration: token?.generation ?? 0, at: now)
                guard connection.start(slot, under: headers(of: entry.batch, token)) else {
                    if let entry = slot.takeEntry() { queue.giveBack(entry) }
                    slots.giveBack(slot)
                    machine.exhausted(id)
                    break
                }
                slots.started(slot)
                started += 1
            }
        } catch let error as TransportError {
            machine.fail(error, at: now)
        } catch CredentialError.renewalPending {
            machine.hold(until: now + Self.renewalLook)
        } catch {
            machine.fail(.credentialUnusable("\(error)"), at: now)
        }
    }

    /// The next push that may start. Those that may not any more come back at once; while one must wait, so does the
    /// lane.
    private func nextToStart() -> BatchQueue.Entry? {
        while var entry = queue.next() {
            switch entry.mayStart() {
            case .open: return entry
            case .closed: respond(entry.tag, .notSent(.stopped))
            case .lapsed:
                queue.giveBack(entry)
                machine.hold(at: loop.roundStart)
                return nil
            }
        }
        return nil
    }

    private func takeSlot() throws(TransportError) -> Connection.Slot {
        if let slot = slots.take() { return slot }
        let slot = try Connection.slot(number: slots.all.count, plan)
        slots.add(slot)
        return slot
    }

    private func headers(of batch: QueuedBatch, _ token: ProviderToken?) -> Connection.Headers {
        let generation = token?.generation ?? 0
        if let laidOut, laidOut.tokenGeneration == generation {
            if laidOut.batch === batch { return laidOut.headers }
            if laidOut.batch.headers == batch.headers {
                self.laidOut = (batch, generation, laidOut.headers)
                return laidOut.headers
            }
        }
        let headers = Connection.headers(batch.headers, token, plan)
        laidOut = (batch, generation, headers)
        return headers
    }

    /// Judged when everything was read that had come by then: by the loop, and by the library that has a buffer of its
    /// own.
    private func expireRequests() {
        let deadline = plan.limits.requestDeadline.nanoseconds
        if slots.expired(deadline, at: loop.readUntil) != nil {
            for connection in connections { _ = connection.attend(loop.roundStart) }
        }
        while let slot = slots.expired(deadline, at: loop.readUntil) {
            connection(slot.connectionID)?.expire(slot)
            if slot.entry != nil { expired(slot, isWritten: slot.isWritten) }
        }
        slots.compact()
    }
}

// MARK: What becomes of a push

extension LaneDriver {
    /// By its number; nil for one that the lane never made.
    func slot(_ number: Int) -> Connection.Slot? { slots.all.indices.contains(number) ? slots.all[number] : nil }

    /// The request's stream is over, and its slot free.
    func ended(_ slot: Connection.Slot, _ end: RequestEnd, on connection: Connection, isStale: Bool = false) {
        slots.giveBack(slot)
        machine.ended(on: connection.id)
        guard let entry = slot.takeEntry() else { return }
        slots.unanswered -= 1
        switch end {
        case .answered(let answer, let latency):
            entry.answered(answer)
            respond(entry.tag, .answered(answer), latencyMicroseconds: latency, startedAt: entry.allowedAt)
            machine.answered(answer, on: isStale ? nil : connection.id, at: loop.roundStart)
            if answer.retiresConnection {
                plan.credential.heed(answer, tokenGeneration: slot.tokenGeneration, logger: plan.logger)
            }
        case .cutOff(let status): respond(cutOff: entry, status)
        case .refused: refused(entry, on: connection)
        case .notProcessed: queue.giveBack(entry)
        case .lost(let words):
            respond(entry.tag, .unknown(.connectionLost(words)), startedAt: entry.allowedAt)
        }
    }

    /// No answer came in time, or not the whole of it; the stream may still be open.
    ///
    /// - Parameter status: of the answer, where its headers came.
    func expired(_ slot: Connection.Slot, isWritten: Bool, status: Int = 0) {
        guard let entry = slot.takeEntry() else { return }
        slots.unanswered -= 1
        if status == 200 {
            let answer = PushResponse(status: status)
            entry.answered(answer)
            return respond(entry.tag, .answered(answer), startedAt: entry.allowedAt)
        }
        if status != 0 { return respond(cutOff: entry, status) }
        // What was not written whole was not processed: the peer keeps its window shut, or reads nothing.
        if !isWritten { entry.returned() }
        respond(
            entry.tag, isWritten ? .unknown(.deadline) : .notSent(.deadline),
            startedAt: isWritten ? entry.allowedAt : 0)
    }

    /// A refusal is certain, its reason is not. A 5xx does not say whether the push was taken.
    private func respond(cutOff entry: BatchQueue.Entry, _ status: Int) {
        if status < 500 { entry.returned() }
        respond(entry.tag, .cutOff(status: status), startedAt: entry.allowedAt)
    }

    /// It goes again, unless the peer refuses it over and over.
    private func refused(_ entry: BatchQueue.Entry, on connection: Connection) {
        guard machine.isCurrent(connection.id) else { return queue.giveBack(entry) }
        var entry = entry
        entry.refusals += 1
        guard entry.refusals < BatchQueue.refusalsMax else {
            entry.returned()
            return respond(entry.tag, .notSent(.streamRefused))
        }
        queue.giveBack(entry)
        log(machine.refused(on: connection.id, at: loop.roundStart), "it refuses every stream")
    }

    private func respond(
        _ tag: Int64, _ result: PushResult, latencyMicroseconds: Int64 = 0, startedAt: UInt64 = 0
    ) {
        outbox.add(
            PushCompletion(
                tag: tag, result: result, latencyMicroseconds: latencyMicroseconds, startedAt: startedAt),
            at: loop.roundStart)
    }

    private func publishIfDue(_ now: UInt64) {
        if slots.unanswered == 0 || outbox.isDue(at: now) { publish() }
    }

    private func publish() {
        status.inFlight = slots.unanswered
        status.queued = queue.count
        status.streamLimit = machine.streamLimit(at: loop.roundStart)
        status.connectFailures = machine.failures
        mailbox.publish(&outbox.completions, status: status)
    }

    /// What is still on the wire stays unanswered, what was not written is given back.
    private func finish() {
        stage = .over
        let failure = machine.failure
        let fault = failure?.faultOfUnsent ?? .stopped
        for slot in slots.all {
            guard let entry = slot.takeEntry() else { continue }
            let lost = failure.map { TransportFault.connectionLost($0.description) } ?? .deadline
            if !slot.isWritten { entry.returned() }
            respond(
                entry.tag, slot.isWritten ? .unknown(lost) : .notSent(fault),
                startedAt: slot.isWritten ? entry.allowedAt : 0)
            slots.unanswered -= 1
        }
        while let entry = queue.next() { respond(entry.tag, .notSent(fault)) }
        publish()
        for connection in connections { connection.close() }
        loop.end()
    }
}

// MARK: What becomes of a connection

extension LaneDriver {
    func opened(_ connection: Connection, streamLimit: Int) {
        machine.opened(connection.id, streamLimit: streamLimit, at: loop.roundStart)
    }

    func openFailed(_ connection: Connection, _ error: TransportError, isFinal: Bool) {
        log(machine.openFailed(connection.id, error, isFinal: isFinal, at: loop.roundStart), "\(error)")
    }

    func heard(_ connection: Connection, streamLimit: Int, at moment: UInt64) {
        machine.heard(connection.id, streamLimit: streamLimit, at: moment)
    }

    func reconnected(_ connection: Connection) { machine.reconnected(connection.id, at: loop.roundStart) }

    func goingAway(_ connection: Connection, _ reason: GoAwayReason, isEnhanceYourCalm: Bool) {
        status.goAway = reason.description
        let error = TransportError.afterConnect(plan, reason.description)
        if reason.isAboutCertificate { machine.fail(error, at: loop.roundStart) }
        let consequence = machine.goingAway(
            connection.id, error, isEnhanceYourCalm: isEnhanceYourCalm, at: loop.roundStart)
        log(consequence, "\(error)")
    }

    func missedDeadline(_ connection: Connection) {
        log(machine.missedDeadline(on: connection.id, at: loop.roundStart), "missed deadlines")
    }

    func lost(on connection: Connection, _ words: String) {
        plan.logger.debug("request lost", metadata: ["reason": "\(words)"])
        log(machine.lost(on: connection.id, .afterConnect(plan, words), at: loop.roundStart), words)
    }

    func closed(_ connection: Connection, _ words: String) {
        connections.removeAll { $0 === connection }
        plan.logger.debug("connection closed", metadata: ["endpoint": "\(plan.endpoint)", "reason": "\(words)"])
        log(machine.closed(connection.id, .afterConnect(plan, words), at: loop.roundStart), words)
    }

    func fail(_ error: TransportError) { machine.fail(error, at: loop.roundStart) }

    func made(connections count: Int) { status.connects += count }

    private func log(_ consequence: LaneStateMachine.Consequence, _ reason: String) {
        switch consequence {
        case .goOn, .gaveUp: break
        case .retired:
            plan.logger.debug(
                "connection retired", metadata: ["endpoint": "\(plan.endpoint)", "reason": "\(reason)"])
        case .heldOff(let failures):
            plan.logger.debug("connect failed", metadata: ["failures": "\(failures)", "reason": "\(reason)"])
        }
    }
}

// MARK: Events

extension LaneDriver {
    /// Not inside a library's callbacks: does what there is to do when all events of this round are handled.
    func pumpAtRoundEnd() { loop.atRoundEnd(events) }

    private func takeOrders() {
        doorbell.silence()
        // What comes in the round in which the lane ended is answered by the mailbox.
        if case .over = stage { return }
        let orders = mailbox.takeOrders()
        if !orders.batches.isEmpty { queue.append(orders.batches) }
        if orders.isFinished { machine.finish() }
        if orders.isCancelled { machine.stop(at: loop.roundStart) }
        pump()
    }

    private func timerFired() {
        timerDue = nil
        pump()
    }
}
