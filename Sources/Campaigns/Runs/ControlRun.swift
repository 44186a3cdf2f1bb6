package import Model
package import Senders
package import Store

/// Pauses, resumes and cancels runs, and reports whether the sender of a run has stopped sending it.
package struct ControlRun: Sendable {
    /// The maximum number of looks: 15 s in total, for a heartbeat, the requests in flight, and a margin.
    private static let looksMax = 150
    private static let lookInterval: Duration = .milliseconds(100)

    /// A run after a requested change.
    package struct Changed: Sendable {
        package var run: Run
        /// The process that still waits for its responses; `nil` if no process has the run any more.
        package var busyOwner: String?
    }

    private let store: any RunLog
    private let clock: WallClock
    private let isAlive: OwnerLiveness.IsAlive
    private let stopFile: StopFile?
    private let plans: ApprovePlans?

    /// - Parameters:
    ///   - isAlive: whether the process behind an owner's name may be alive.
    ///   - stopFile: the file that may hold the stop of a single run.
    ///   - plans: decides who may approve a stage; `nil` if every caller may.
    package init(
        store: any RunLog, clock: WallClock, isAlive: @escaping OwnerLiveness.IsAlive, stopFile: StopFile? = nil,
        plans: ApprovePlans? = nil
    ) {
        self.stopFile = stopFile
        self.plans = plans
        self.store = store
        self.clock = clock
        self.isAlive = isAlive
    }

    /// Pauses a run until it is resumed. Returns when its sender has released it, or after 15 s.
    ///
    /// - Parameter isHeld: whether to change nothing, and to throw ``RunChanged``, if the run no longer has the state
    ///   of `run`.
    package func pause(
        _ run: Run, reason: String?, by actor: Actor, isHeld: Bool = false
    ) async throws -> Changed {
        try await change(run, to: .paused, reason: reason, by: actor, isHeld)
    }

    /// Resumes a paused run: a process that sends open runs continues it.
    ///
    /// - Parameter reason: the reason, for the audit log.
    package func resume(
        _ run: Run, reason: String? = nil, by actor: Actor, isHeld: Bool = false
    ) async throws -> Changed {
        if isHeld, let now = try await store.run(run.id), SeenRun(now) != SeenRun(run) {
            throw RunChanged(run: run.id)
        }
        try stopFile?.lift(of: run)
        do {
            return try await change(run, to: .running, reason: reason, by: actor, isHeld)
        } catch StoreError.awaitsApproval(let id) {
            // The approval of a stage does not end the wait for the choice of a variant.
            guard try await store.stages(of: id).contains(where: \.awaitsVariant) else {
                throw StoreError.awaitsApproval(run: id)
            }
            throw try await unapproved(id, stage: nil, variant: nil)
        }
    }

    /// Approves the stage that a run is paused for: a process that sends open runs continues the run.
    ///
    /// - Parameter stage: the number of the stage that the person has seen, from 1. A page or a command may show an
    ///   older stage than the one that waits now. An approval without a number is therefore refused, and the refusal
    ///   names the number.
    /// - Parameter variant: the name of the variant that the person chose for the rest, in a run that waits for this
    ///   choice. Only the last stage waits for it, so the choice needs no number.
    package func approve(_ run: Run, stage: Int?, variant: String? = nil, by actor: Actor) async throws -> Changed {
        try await plans?.requireOther(than: run, actor)
        let campaign = run.definition.campaign
        let chosen = campaign.variants.firstIndex { $0.name == variant }
        if let variant, chosen == nil {
            let names = campaign.variants.map(\.name).joined(separator: ", ")
            throw Failure(
                .notFound,
                "\(campaign.name) has no variant \"\(variant)\"; "
                    + (names.isEmpty ? "it has no variants, so name none" : "use one of \(names)"))
        }
        try requireUnexpired(run)
        let number = stage ?? (chosen == nil ? nil : campaign.stages?.count)
        let isApproved =
            if let number, number > 0 {
                try await store.approveStage(
                    of: run.id, stage: number - 1, variant: chosen, by: actor, now: clock.now())
            } else { false }
        guard isApproved else { throw try await unapproved(run.id, stage: number, variant: variant) }
        guard let run = try await store.run(run.id) else { throw Failure(.notFound, "run \(run.id) no longer exists") }
        return Changed(run: run, busyOwner: nil)
    }

    /// Refuses the approval of a stage whose pushes have all expired, because it would send nothing. In a run by each
    /// device's clock, some may not have expired yet.
    private func requireUnexpired(_ run: Run) throws {
        guard run.state == .paused, run.halt == .approval, run.definition.wall == nil,
            let end = run.definition.expiry.moment(wave: nil), clock.now() >= end
        else { return }
        throw Failure(
            .refused,
            "run \(run.id) was not approved: its pushes expired at \(end.minute) UTC, so no device would get "
                + "one; `fanfare cancel \(run.id)` ends the run")
    }

    /// Returns the failure of an approval. It names the stage that the run waits for, if any.
    private func unapproved(_ id: Int64, stage: Int?, variant: String?) async throws -> Failure {
        guard let run = try await store.run(id) else { return Failure(.notFound, "run \(id) no longer exists") }
        let records = try await store.stages(of: id)
        let waiting = records.first { $0.openedAt == nil }
        if run.state == .paused, run.halt == .restored {
            return Failure(.halted, "run \(id) was not approved: \(run.stateReason ?? "it comes from a backup")")
        }
        guard run.state == .paused, run.halt == .approval, let waiting else {
            return Failure(
                .invalidData,
                "run \(id) does not wait for the approval of a stage; it is \(RunResult(run).stateSummary)")
        }
        let name = StageSummary(run, waiting).name
        let devices = waiting.size.counted("device")
        let awaitsVariant = records.contains(where: \.awaitsVariant)
        if awaitsVariant, variant == nil {
            let names = run.definition.campaign.variants.map(\.name).joined(separator: " or ")
            return Failure(
                .invalidData,
                "run \(id) waits until a person chooses the variant for \(name), \(devices): "
                    + "`fanfare approve \(id) --variant NAME` sends \(names)")
        }
        if !awaitsVariant, variant != nil {
            return Failure(
                .refused,
                "run \(id) waits for the approval of \(name), and there is no variant to choose: "
                    + "`fanfare approve \(id) --stage \(waiting.index + 1)` approves it")
        }
        let command = "`fanfare approve \(id) --stage \(waiting.index + 1)`"
        guard let stage else {
            return Failure(
                .invalidData, "run \(id) waits at \(name), \(devices): name the stage to approve, \(command)")
        }
        return Failure(
            .refused,
            "run \(id) waits at \(name), \(devices), but stage \(stage) was approved; reload the run; \(command) "
                + "sends it")
    }

    /// Ends a run permanently: deliveries not sent yet are suppressed.
    package func cancel(
        _ run: Run, reason: String?, by actor: Actor, isHeld: Bool = false
    ) async throws -> Changed {
        let changed = try await change(run, to: .cancelled, reason: reason, by: actor, isHeld)
        // Lift the stop last, so that nothing of the run is sent in the meantime.
        try stopFile?.lift(of: run)
        return changed
    }

    private func change(
        _ run: Run, to state: RunState, reason: String?, by actor: Actor, _ isHeld: Bool
    ) async throws -> Changed {
        // A person who pauses a run because of one device may have pasted its token, so redact the reason.
        let reason = try RecordedReason.checked(reason)
        do {
            try await store.change(
                run.id, to: state, reason: reason, now: clock.now(), by: actor, seen: isHeld ? SeenRun(run) : nil)
        } catch StoreError.runChanged {
            throw RunChanged(run: run.id)
        }
        // The looks are counted, not timed, because the wall clock may be set in the meantime.
        var looks = 0
        while true {
            guard let run = try await store.run(run.id) else {
                throw Failure(.notFound, "run \(run.id) no longer exists")
            }
            guard let owner = run.owner, isAlive(owner) else { return Changed(run: run, busyOwner: nil) }
            if looks >= Self.looksMax { return Changed(run: run, busyOwner: owner) }
            looks += 1
            await clock.sleep(Self.lookInterval)
            try Task.checkCancellation()
        }
    }
}

/// The error for a run that is no longer in the state that the caller has seen.
package struct RunChanged: Error, Hashable, Sendable, CustomStringConvertible {
    package var run: Int64

    package var description: String { StoreError.runChanged(run: run).description }
}
