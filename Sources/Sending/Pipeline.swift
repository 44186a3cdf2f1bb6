import APNs
package import Logging
package import Model
import Platform
import Rendering
package import Senders
package import Store

/// The operations that sending a run needs from a store.
package typealias SendingStore = DeliveryQueue & RunLog & RunOwnership & AuditLog & StopLog & OutcomeReader
    & FeedbackLog

/// The pipeline that sends a run, from its frozen definition to its last outcome:
///
///     claim -> recover -> freeze -> lease -> send -> settle -> close
///                           \______ at the same time ______/
///
/// Each fact is recorded before its effect. A delivery is leased in a committed transaction before its first byte is
/// sent, and counts as done only once its outcome is recorded. Memory does not grow with the audience: each lane holds
/// at most `LaneLimits.outstandingMax` pushes, and asks for the next lease when it has room. Runs that share a
/// ``LaneGroup`` share its lanes.
package struct Pipeline: Sendable {
    let store: any SendingStore
    private let lanes: LaneGroup
    var sender: SendingSetup { lanes.sender }
    let clock: WallClock
    private let jitter: @Sendable () -> Double
    let logger: Logger
    /// The identity that the owner's name stands for. `nil` in tests of a single process.
    private let registration: SenderRegistration?

    /// Creates a pipeline for runs that share lanes. The caller must run the lanes, see ``LaneGroup/run()``.
    package init(
        store: any SendingStore, lanes: LaneGroup, clock: WallClock, jitter: @escaping @Sendable () -> Double,
        logger: Logger, registration: SenderRegistration? = nil
    ) {
        self.store = store
        self.lanes = lanes
        self.clock = clock
        self.jitter = jitter
        self.logger = logger
        self.registration = registration
    }

    /// Sends a recorded run, starting from the state in the store.
    ///
    /// - Parameters:
    ///   - actor: names this process to other processes and in the audit log. If another living process owns the run,
    ///     this process takes part in the run or leaves it unchanged.
    ///   - idleLimit: if nothing is due for longer than this, the run is released, and a later call continues it. `nil`
    ///     means that the call waits.
    ///   - watch: receives the run's control as soon as the run is claimed, to show progress and to request a stop.
    package func execute(
        _ run: Run, as actor: Actor, idleLimit: Duration? = nil,
        watch: @Sendable (RunControl, LatencyRecorder) -> Void
    ) async throws -> RunEnd {
        while true {
            if let end = try await takePart(in: run, as: actor, idleLimit, watch) { return end }
            // The lead has exited, or is about to record the end of the run.
            await clock.sleep(Self.leadPause)
        }
    }

    /// Returns `nil` if the run must be checked again: its lead has released it, or is about to record its end.
    private func takePart(
        in run: Run, as actor: Actor, _ idleLimit: Duration?,
        _ watch: @Sendable (RunControl, LatencyRecorder) -> Void
    ) async throws -> RunEnd? {
        let isLead: Bool
        switch try await claim(run, as: actor) {
        case .lead: isLead = true
        case .joined: isLead = false
        case .free: return nil
        case .refused(let end): return end
        }
        let renderers: VariantRenderers
        do {
            renderers = try VariantRenderers(run.definition)
        } catch {
            // Rendering fails on every machine and at every later try.
            if isLead {
                try await store.release(run.id, by: actor, state: .failed, reason: "\(error)", now: clock.now())
            } else {
                try await store.leave(run.id, by: actor, now: clock.now())
            }
            return .failed("\(error)")
        }
        if isLead { try await reopenLeftMismatched(run, actor.name) }
        guard let claimed = try await store.run(run.id) else { throw SendingError.runVanished(run.id) }
        let control = RunControl(
            counts: claimed.counts, isFrozen: claimed.isFrozen, trustWindow: sender.trustWindow,
            journal: sender.journals.own, isJoined: !isLead)
        defer { control.storeBackoff.runEnded() }
        lanes.takeOver(try await store.holds(of: run.id))
        // The run paused itself, and APNs has not responded to it since.
        if claimed.haltedAt != nil { lanes.probeFirst() }
        let watched = sender.stops.join(run) { control.stop(.stopped($0), since: $1) }
        defer { sender.stops.remove(watched) }
        let latencies = LatencyRecorder()
        let time = await SettlementClock.following(store, clock: clock, actor: actor, logger: logger)
        watch(control, latencies)
        let heartbeat = Heartbeat(
            store: store, run: run.id, campaign: run.campaign, lateByMax: claimed.definition.campaign.lateByMax,
            owner: actor.name, control: control, endpointHolds: { lanes.lookAtEndpoints() }, clock: clock,
            logger: logger, registration: registration,
            takeoverHook: isLead ? takeoverHook(of: run, actor.name, control) : nil,
            recoverForgotten: { try await recoverForgotten($0, of: run, actor.name, control) })
        try await heartbeat.beat {
            @Sendable func freezeIfLeft() async {
                guard !claimed.isFrozen, isLead else { return }
                // Deliveries that are already leased still get their responses, which are recorded.
                do { try await freeze(claimed, actor.name, control) } catch { control.fail(error) }
            }
            // A correction goes out newest first, so freeze the whole audience before the first lease.
            if claimed.definition.correction != nil { await freezeIfLeft() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                if claimed.definition.correction == nil { group.addTask { await freezeIfLeft() } }
                group.addTask {
                    let progress = inProgress(claimed, actor, renderers, control, latencies, time)
                    await lanes.send(progress, idleLimit: idleLimit) {
                        request(claimed, actor.name, $0, renderers)
                    }
                }
                try await group.waitForAll()
            }
        }
        guard isLead else { return try await leave(run, as: actor, control) }
        if let failure = control.decision.failure {
            // Record the reason before the error is thrown, so that the next owner does not repeat the faulty requests.
            if control.decision.reason?.waitsForPerson == true { _ = try? await close(run, as: actor, control) }
            throw failure
        }
        // Counting a run of many millions takes minutes. Until that is done, the run keeps its owner.
        if control.decision.reason == nil {
            try await heartbeat.beat {
                try await control.storeBackoff.insisting(clock) { try await sumUp(run, control) }
            }
        }
        var isFirstTry = true
        return try await control.storeBackoff.insisting(clock) {
            defer { isFirstTry = false }
            do {
                return try await close(run, as: actor, control)
            } catch let error as StoreError where !isFirstTry && error == .lostClaim(run: run.id, holder: nil) {
                // An earlier try may have been recorded although its response was lost.
                guard let end = try await released(run, control) else { throw error }
                return end
            }
        }
    }

    /// Pauses a run that cannot be sent with this machine's configuration, and recovers what was in flight.
    package func refuse(_ run: Run, as actor: Actor, reason: String) async throws -> RunEnd {
        switch try await claim(run, as: actor) {
        case .refused(let end): return end
        case .free: return .credentialRefused(reason)
        case .joined:
            try await store.leave(run.id, by: actor, now: clock.now())
            return .credentialRefused(reason)
        case .lead where try await hasOtherParticipants(run, actor):
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: clock.now())
            return .credentialRefused(reason)
        case .lead: break
        }
        try await store.release(
            run.id, by: actor, state: .paused, reason: reason, halt: .credential, now: clock.now())
        return .credentialRefused(reason)
    }

    private enum Taken {
        /// This process owns the run and has recovered what earlier owners had in flight.
        case lead
        /// Another sender owns the run, and this process takes part in it.
        case joined
        /// The owner released the run before its end, so that it can be claimed now.
        case free
        case refused(RunEnd)
    }

    private func claim(_ run: Run, as actor: Actor) async throws -> Taken {
        let order = sender.stops.orders.order(of: run)
        // Record the stops of other runs too. This also removes a stop from the STOP file if its run is over or absent.
        do { try await sender.stops.record(in: store, now: clock.now()) } catch {
            // An unavailable store prevents the run anyway, and a later sender records the stop.
            guard order == nil || (error as? StoreError)?.isPassing == true else { throw error }
        }
        if let order { return .refused(.stopped(order)) }
        await SettlementClock.noteStep(store, clock: clock, actor: actor, logger: logger)
        switch try await store.claim(run.id, by: actor, now: clock.now()) {
        case .held(let other, let heartbeat):
            guard try await store.join(run.id, by: actor) else {
                guard let left = try await store.run(run.id) else { throw SendingError.runVanished(run.id) }
                return RunEnd(held: left, by: other, heartbeat: heartbeat).map(Taken.refused) ?? .free
            }
            try await recovery.recoverOwn(run, of: actor.name)
            return .joined
        case .paused(let person, let reason): return .refused(.paused(by: person, reason: reason))
        case .breakerOpen(let reason): return .refused(.breakerOpen(reason))
        case .late(let reason): return .refused(.late(reason))
        case .halted(let reason): return .refused(.halted(reason))
        case .awaitingApproval(let reason): return .refused(.awaitingApproval(reason))
        case .stopped(let order): return .refused(.stopped(order))
        case .unconfirmed(let moment): return .refused(.waiting(until: moment))
        case .claimed: break
        }
        _ = try await recovery.recover(run, heldBy: actor.name)
        return .lead
    }

    /// Whether other senders take part in the run. If so, a fault of this machine does not pause the run.
    private func hasOtherParticipants(_ run: Run, _ actor: Actor) async throws -> Bool {
        guard store.isShared else { return false }
        return try await store.participants(of: run.id, apartFrom: actor.name).others > 0
    }

    /// The pause between two checks of a run whose lead has exited.
    private static let leadPause: Duration = .milliseconds(500)

    /// Leaves a run that another sender leads. Only the lead pauses or ends the run. All responses to this sender's
    /// requests are already recorded.
    private func leave(_ run: Run, as actor: Actor, _ control: RunControl) async throws -> RunEnd? {
        try await control.storeBackoff.insisting(clock) {
            if let reason = control.decision.reason?.halt { try await record(reason, of: run, as: actor, control) }
            if case .stopped(let order) = control.decision.reason {
                try await record(order, of: run, as: actor, control)
            }
            try await store.leave(run.id, by: actor, now: clock.now())
        }
        if let failure = control.decision.failure { throw failure }
        if let end = control.decision.reason.flatMap(RunEnd.init(leftFor:)) { return end }
        guard let left = try await store.run(run.id) else { throw SendingError.runVanished(run.id) }
        return RunEnd(left)
    }

    /// Freezes the audience. Returns early if the run is to stop. The next start continues after the last delivery
    /// written.
    private func freeze(_ run: Run, _ owner: String, _ control: RunControl) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    try await control.storeBackoff.insisting(clock, while: { control.decision.reason == nil }) {
                        let counts = try await store.freeze(run.id, by: owner, now: clock.now()) {
                            control.grew($0)
                        }
                        control.progress.froze(counts)
                    }
                } catch let grown as AudienceGrew {
                    logger.warning("\(grown)", metadata: .facts([.run: "\(run.id)"]))
                    control.stop(.stateChanged(.paused))
                } catch let delayed as FreezeDelayed {
                    logger.warning("\(delayed)", metadata: .facts([.run: "\(run.id)"]))
                    control.stop(.nothingDue(until: clock.now() + FreezeDelayed.pause))
                } catch is CancellationError where control.decision.reason != nil || Task.isCancelled {
                } catch let error as StoreError where error.isPassing && control.decision.reason != nil {
                }
            }
            group.addTask { await control.decision.halted() }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    private func close(_ run: Run, as actor: Actor, _ control: RunControl) async throws -> RunEnd {
        let now = clock.now()
        switch control.decision.reason {
        case nil:
            try await RunSuccess(sender.success).finish(run, as: actor, in: store, now: now)
            // The run is not finished if a breaker at another sender tripped on the last responses.
            return ((try? await store.run(run.id)) ?? nil).flatMap(RunEnd.init) ?? .finished
        case .stopRequested, .leadGone:
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .stoppedEarly
        case .nothingDue(let moment):
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .waiting(until: moment)
        case .stateChanged:
            // Keep the state that another process has set. The state may have changed again since.
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            guard let left = try await store.run(run.id) else { throw SendingError.runVanished(run.id) }
            if left.state == .cancelled {
                // Count the outcomes now, so that a later reader does not wait for the count.
                try await store.summarizeOutcomes(run: run.id)
                return .cancelled
            }
            return RunEnd(left) ?? .stoppedEarly
        case .stopped(let order):
            try await record(order, of: run, as: actor, control)
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .stopped(order)
        case .storeTooSlow(let reason):
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .unreachable(reason)
        case .unreachable(let reason) where try await hasOtherParticipants(run, actor):
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .unreachable(reason)
        case .credential(let reason) where try await hasOtherParticipants(run, actor):
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .credentialRefused(reason)
        case .unreachable(let reason):
            // A person who resumes the run has reason to think that the endpoint works again.
            try await store.setHolds([], run: run.id, owner: actor.name)
            try await store.release(run.id, by: actor, state: .paused, reason: reason, halt: .unreachable, now: now)
            return .unreachable(reason)
        case .credential(let reason):
            try await store.release(run.id, by: actor, state: .paused, reason: reason, halt: .credential, now: now)
            return .credentialRefused(reason)
        case .breaker(let reason), .environmentMismatch(_, let reason):
            try await record(reason, of: run, as: actor, control)
            try await store.release(run.id, by: actor, state: .running, reason: nil, now: now)
            return .breakerOpen(reason)
        }
    }

    /// Records a stop known only from the STOP file, and the number of requests started after it.
    private func record(_ order: StopOrder, of run: Run, as actor: Actor, _ control: RunControl) async throws {
        let now = clock.now()
        try await sender.stops.record(in: store, now: now)
        try await store.recordEvent(
            kind: .runStopped, run: run.id, actor: actor,
            detail: StopNote(order, left: control.decision.startedAfterStop).summary, now: now)
    }

    /// Records why a person must look at the run. Deliveries refused because of a wrong host or topic become pending
    /// again.
    private func record(_ reason: String, of run: Run, as actor: Actor, _ control: RunControl) async throws {
        let now = clock.now()
        if !control.decision.isHaltOnRecord {
            try await store.halt(run.id, by: actor, .breaker, reason: reason, now: now)
        }
        if case .environmentMismatch(let environment, _) = control.decision.reason {
            _ = try await store.reopenMismatched(run: run.id, environment, owner: actor.name, now: now)
        }
    }

    /// Counts the outcomes of a completed run, and records what its responses say about tokens. If a person must check
    /// them first, stops the run and records nothing.
    private func sumUp(_ run: Run, _ control: RunControl) async throws {
        let tokens = try await TokenConclusion(run, in: store)
        if let reason = try await tokens.halt() { return control.stop(.breaker(reason)) }
        try await store.summarizeOutcomes(run: run.id)
        try await tokens.write(now: clock.now())
    }
}

extension Pipeline {
    private func request(
        _ run: Run, _ owner: String, _ environment: PushEnvironment, _ renderers: VariantRenderers
    ) -> LeaseRequest {
        var request = LeaseRequest(
            run: run.id, environment: environment, after: 0, limit: sender.leaseMax, now: clock.now(), owner: owner,
            fields: renderers.fields, silentBudget: run.definition.goesBySilentBudget ? sender.silentBudget : nil,
            expiry: run.definition.expiry, quiet: QuietTimes(run.definition.campaign.schedule),
            badgeIncrement: renderers.badgeIncrement)
        request.paces = sender.paces
        request.reachable = Set(sender.endpoints.keys)
        request.hasWaves = run.definition.campaign.schedule?.zone == .recipient
        request.caps = CapRequest(run, caps: sender.frequencyCaps)
        request.stages = run.isTest ? 0 : run.definition.campaign.stages?.count ?? 0
        request.goesByFeedback = request.hasStages && run.definition.campaign.goesByFeedback
        request.decidingStage = run.isTest ? nil : run.definition.campaign.decidingStage
        if store.isShared, let pace = run.definition.campaign.pace {
            request.paces.append(SharedPace(name: "run \(run.id)", pace: pace))
        }
        return request
    }

    private func inProgress(
        _ run: Run, _ owner: Actor, _ renderers: VariantRenderers, _ control: RunControl, _ latencies: LatencyRecorder,
        _ time: SettlementClock
    ) -> RunInProgress {
        let (high, low) = store.namespace
        return RunInProgress(
            record: run, owner: owner, renderers: renderers, ids: PushIDSpace(namespace: PushID(high: high, low: low)),
            control: control, settlementPolicy: SettlementPolicy(run.definition, backoff: RetryWait(jitter: jitter)),
            latencies: latencies, store: store, clock: clock, settlementClock: time)
    }
}
