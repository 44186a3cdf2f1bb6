import Glibc
import HTTP2
import Logging
import Platform

/// The loop of a lane. It takes batches, carries out the actions of ``LaneStateMachine`` with the connections of its
/// transport, and collects completions. Only the lane's thread uses it. The mailbox and the eventfd are shared.
final class LaneDriver<Connection: LaneConnection> {
    let plan: LanePlan
    let context: Connection.Context
    let loop: EventLoop
    private let mailbox: LaneMailbox
    private let wakeup: EventFD

    private var machine: LaneStateMachine
    private var queue = BatchQueue()
    private var slots = SlotPool<Connection.Slot>()
    private var connections: [Connection] = []
    private var outbox = CompletionBuffer()
    private var status = LaneStatus()
    /// The headers of the last push. The next push usually has the same.
    private var laidOut: (batch: QueuedBatch, tokenGeneration: Int, headers: Connection.Headers)?
    private let events = LoopEvents()
    private var timerDue: UInt64?
    private var phase = Phase.waiting

    /// The interval between checks for a provider token that is being fetched.
    private static var renewalLook: UInt64 { 20_000_000 }

    private enum Phase {
        /// Becomes `pumping` or `over`.
        case waiting
        /// Becomes `waiting` or `over`.
        case pumping
        case over
    }

    private init(
        _ plan: LanePlan, _ context: Connection.Context, _ mailbox: LaneMailbox, _ wakeup: EventFD, _ loop: EventLoop
    ) {
        self.plan = plan
        self.context = context
        self.mailbox = mailbox
        self.wakeup = wakeup
        self.loop = loop
        machine = LaneStateMachine(
            endpoint: plan.endpoint, limits: plan.limits, backOff: plan.backOff, traits: Connection.traits)
    }

    /// Runs a lane until its end. Afterwards every accepted push has its completion in the mailbox, except pushes that
    /// the mailbox still queues.
    static func run(
        _ plan: LanePlan, _ context: Connection.Context, _ mailbox: LaneMailbox, _ wakeup: EventFD
    ) -> Result<Void, TransportError> {
        do throws(EventLoopError) {
            let loop = try EventLoop(named: plan.name, monotonic: plan.monotonic)
            let driver = LaneDriver(plan, context, mailbox, wakeup, loop)
            driver.events.wokenUp = { driver.takeCommands() }
            driver.events.timeCame = { driver.timerFired() }
            driver.events.roundIsOver = { driver.pump() }
            guard loop.watch(wakeup.file, for: .readable, driver.events) else { throw .noDescriptor(code: errno) }
            loop.run()
            // Break the reference cycles of the driver with its connections and events.
            driver.connections = []
            driver.events.clear()
            return driver.machine.failure.map { .failure($0) } ?? .success(())
        } catch {
            return .failure(.unreachable(plan.endpoint, reason: error.description))
        }
    }

    /// Does all due work, and schedules the next call. Do not call it inside a library's callbacks.
    func pump() {
        guard case .waiting = phase else { return }
        phase = .pumping
        let now = loop.roundStart
        expireRequests()
        var due = act(now)
        guard case .pumping = phase else { return }
        for connection in connections { due = min(due, connection.attend(now)) }
        publishIfDue(now)
        if let deadline = slots.nextDeadline(plan.limits.requestDeadline.nanoseconds) { due = min(due, deadline) }
        if let publishDue = outbox.due { due = min(due, publishDue) }
        phase = .waiting
        schedule(due)
    }

    /// Carries out actions until none is due. Returns the time of the next one.
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
                connection(id)?.abort("no response to PING within \(plan.limits.pingDeadline)")
            case .abort(let id, .crowded): connection(id)?.abort("too many connections are closing")
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
                guard let entry = nextToStart() else { return slots.release(slot) }
                entry.started()
                slot.hold(entry, on: id, tokenGeneration: token?.generation ?? 0, at: now)
                guard connection.start(slot, under: headers(of: entry.batch, token)) else {
                    if let entry = slot.takeEntry() { queue.requeue(entry) }
                    slots.release(slot)
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

    /// Returns the next push that may start. Reports a push that may no longer start immediately. If a push must wait,
    /// the whole lane waits.
    private func nextToStart() -> BatchQueue.Entry? {
        while var entry = queue.next() {
            switch entry.mayStart() {
            case .open: return entry
            case .closed: respond(entry.tag, .notSent(.stopped))
            case .lapsed:
                queue.requeue(entry)
                machine.hold(at: loop.roundStart)
                return nil
            }
        }
        return nil
    }

    private func takeSlot() throws(TransportError) -> Connection.Slot {
        if let slot = slots.acquire() { return slot }
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

    /// Ends requests whose deadline has passed. First lets the connections handle everything that arrived by then.
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

// MARK: The end of a push

extension LaneDriver {
    /// Returns a slot by its number, or `nil` if the lane never created it.
    func slot(_ number: Int) -> Connection.Slot? { slots.all.indices.contains(number) ? slots.all[number] : nil }

    /// Records that the request's stream has ended, which frees its slot.
    func ended(_ slot: Connection.Slot, _ end: RequestEnd, on connection: Connection, isStale: Bool = false) {
        slots.release(slot)
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
        case .notProcessed: queue.requeue(entry)
        case .lost(let reason):
            respond(entry.tag, .unknown(.connectionLost(reason)), startedAt: entry.allowedAt)
        }
    }

    /// Handles a request without a complete response in time. Its stream may still be open.
    func expired(_ slot: Connection.Slot, isWritten: Bool) {
        giveUp(slot, isWritten: isWritten, unanswered: .deadline, unsent: .deadline)
    }

    /// Completes the push in a slot without its whole response. The headers of a response are enough for most.
    ///
    /// The peer cannot have processed a request that was not completely written. The peer's window stayed closed, or
    /// the peer did not read.
    private func giveUp(
        _ slot: Connection.Slot, isWritten: Bool, unanswered: TransportFault, unsent: TransportFault
    ) {
        guard let entry = slot.takeEntry() else { return }
        slots.unanswered -= 1
        if slot.status == 200 {
            let answer = PushResponse(status: slot.status)
            entry.answered(answer)
            return respond(entry.tag, .answered(answer), startedAt: entry.allowedAt)
        }
        if slot.status != 0 { return respond(cutOff: entry, slot.status) }
        if !isWritten { entry.returned() }
        respond(
            entry.tag, isWritten ? .unknown(unanswered) : .notSent(unsent),
            startedAt: isWritten ? entry.allowedAt : 0)
    }

    /// Reports an incomplete response. Below 500 the push was certainly rejected, for an unknown reason. A 5xx does not
    /// say whether the push was accepted.
    private func respond(cutOff entry: BatchQueue.Entry, _ status: Int) {
        if status < 500 { entry.returned() }
        respond(entry.tag, .cutOff(status: status), startedAt: entry.allowedAt)
    }

    /// Sends the push again, unless the peer has refused it too often.
    private func refused(_ entry: BatchQueue.Entry, on connection: Connection) {
        guard machine.isCurrent(connection.id) else { return queue.requeue(entry) }
        var entry = entry
        entry.refusals += 1
        guard entry.refusals < BatchQueue.refusalsMax else {
            entry.returned()
            return respond(entry.tag, .notSent(.streamRefused))
        }
        queue.requeue(entry)
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

    private func publishIfDue(_ now: UInt64) { if slots.unanswered == 0 || outbox.isDue(at: now) { publish() } }

    private func publish() {
        status.inFlight = slots.unanswered
        status.queued = queue.count
        status.streamLimit = machine.streamLimit(at: loop.roundStart)
        status.connectFailures = machine.failures
        mailbox.publish(&outbox.completions, status: status)
    }

    /// Completes all remaining pushes and ends the lane. Without a response, a written push is `unknown`, and any other
    /// is `notSent`.
    private func finish() {
        phase = .over
        let failure = machine.failure
        let fault = failure?.faultOfUnsent ?? .stopped
        let lost = failure.map { TransportFault.connectionLost($0.description) } ?? .deadline
        for slot in slots.all { giveUp(slot, isWritten: slot.isWritten, unanswered: lost, unsent: fault) }
        while let entry = queue.next() { respond(entry.tag, .notSent(fault)) }
        publish()
        for connection in connections { connection.close() }
        loop.end()
    }
}

// MARK: Events of a connection

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

    func exhausted(_ connection: Connection) { machine.exhausted(connection.id) }

    func missedDeadline(_ connection: Connection) {
        log(machine.missedDeadline(on: connection.id, at: loop.roundStart), "missed deadlines")
    }

    func lost(on connection: Connection, _ reason: String) {
        plan.logger.debug("request lost", metadata: ["reason": "\(reason)"])
        log(machine.lost(on: connection.id, .afterConnect(plan, reason), at: loop.roundStart), reason)
    }

    func closed(_ connection: Connection, _ reason: String) {
        connections.removeAll { $0 === connection }
        plan.logger.debug("connection closed", metadata: ["endpoint": "\(plan.endpoint)", "reason": "\(reason)"])
        log(machine.closed(connection.id, .afterConnect(plan, reason), at: loop.roundStart), reason)
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
    /// Schedules ``pump()`` for the end of this round. Do not call it inside a library's callbacks.
    func pumpAtRoundEnd() { loop.atRoundEnd(events) }

    private func takeCommands() {
        wakeup.clear()
        // The mailbox completes batches that arrive in the round in which the lane ends.
        if case .over = phase { return }
        let commands = mailbox.takeCommands()
        if !commands.batches.isEmpty { queue.append(commands.batches) }
        if commands.isFinished { machine.finish() }
        if commands.isCancelled { machine.stop(at: loop.roundStart) }
        pump()
    }

    private func timerFired() {
        timerDue = nil
        pump()
    }
}
