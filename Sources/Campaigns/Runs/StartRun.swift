import Foundation
package import Model
package import Store

/// Creates a run, or finds the run that an occurrence already has.
package struct StartRun: Sendable {
    private let store: any ApprovePlans.PlanStore
    private let approvals: ApprovalRules?
    private let brake: Configuration.VolumeBrake?

    /// - Parameters:
    ///   - approvals: the configured rules; `nil` if no run needs an approval.
    ///   - brake: the configured volume brake; `nil` if no run waits because of its size.
    package init(
        store: any ApprovePlans.PlanStore, approvals: ApprovalRules? = nil,
        brake: Configuration.VolumeBrake? = nil
    ) {
        self.store = store
        self.approvals = approvals
        self.brake = brake
    }

    /// Creates the run of an occurrence. If the occurrence already has a run, returns that run as it was frozen,
    /// whatever the files say now.
    ///
    /// A run that is much larger than usual is created paused, and waits for a person. Throws ``PlanDrift`` or
    /// ``GuardRefusal`` before anything is written. If the plan still needs approvals, records its approval request
    /// and throws ``Unapproved``.
    ///
    /// - Parameters:
    ///   - plan: the plan that a person has seen, and that the run must match.
    ///   - overriding: the guards that the caller decided to override. Each one that would have refused is recorded.
    ///   - files: SHA-256 in hex of the files the definition was read from, by path, for the audit log.
    ///   - refusesRepeats: whether a person starts the run, who may not know that the same content was just sent; see
    ///     ``EarlierSend``.
    ///   - isScheduled: whether the occurrence belongs to the campaign's schedule or feed; approvals then cover this
    ///     occurrence only.
    ///   - mayWait: whether the plan may wait for approvals. If not, none are requested, and the occurrence is refused
    ///     permanently.
    ///   - emergencyOverride: the reason to start without the required approvals; `nil` if the run needs no emergency
    ///     override.
    ///   - counted: the audience, if the caller has counted it already.
    ///   - ready: called when the guards have passed, before anything is written. If it throws, there is no run.
    /// - Returns: the run, whether it is new, and the audience if it was counted.
    package func start(
        _ definition: RunDefinition, occurrence: String, by actor: Actor, now: Timestamp, plan: PlanToken? = nil,
        overriding: Set<GuardName> = [], files: [String: String] = [:], refusesRepeats: Bool = false,
        isScheduled: Bool = false, mayWait: Bool = true, emergencyOverride: String? = nil,
        counted: Reach? = nil, ready: () async throws -> Void = {}
    ) async throws -> (run: Run, isNew: Bool, reach: Reach?) {
        let campaign = definition.campaign
        if let problem = OccurrenceName.problem(with: occurrence) { throw Failure(.invalidData, problem) }
        if let known = try await known(campaign.name, occurrence: occurrence, plan: plan) {
            return (known, false, counted)
        }
        let occurrenceSigned = isScheduled ? occurrence : ""
        let repeated = refusesRepeats ? try await EarlierSend.find(definition, in: store, now: now) : nil
        var (refusals, found, segments) = try await check(
            definition, occurrence: occurrenceSigned, plan: plan, files: files, counted: counted, now: now)
        if let repeated { refusals.append(.repeated(facts: repeated.facts(now: now))) }
        if let refusal = refusals.first(where: { !overriding.contains($0.name) || !$0.name.mayBeOverridden }) {
            throw refusal
        }
        try await ready()
        let reach = found?.total ?? 0
        let notes = refusals.map { EventNote(kind: .guardOverridden, detail: "\($0.name.rawValue): \($0.facts)") }
        let plans = ApprovePlans(store: store, rules: approvals)
        let demand = try await plans.demand(
            definition, occurrence: occurrenceSigned, reach: reach, by: actor, now: now, files: files,
            emergencyOverride: try RecordedReason.checked(emergencyOverride))
        // The volume brake does not check an approved plan, because the approvers have seen exactly this plan.
        let volume =
            demand != nil && emergencyOverride == nil
            ? nil : try await VolumeRequest.weighing(campaign, reach: reach, brake, by: actor, in: store)
        var limits = limits(reach, isWeighed: volume != nil, isPassedOver: emergencyOverride != nil)
        if let segments {
            limits = limits ?? ReachLimits(reach: reach)
            limits?.segments = segments
        }
        guard let demand else {
            let (run, isNew) = try await store.createRun(
                definition, occurrence: occurrence, now: now, by: actor, notes: notes, files: files, volume: volume,
                limits: limits)
            return (run, isNew, found)
        }
        do {
            let (run, isNew) = try await store.createApprovedRun(
                definition, occurrence: occurrence, now: now, by: actor, notes: notes, files: files, demand: demand,
                volume: volume, limits: limits)
            return (run, isNew, found)
        } catch var unapproved as Unapproved where unapproved.isWaiting {
            unapproved.mayWait = mayWait
            unapproved.signersOfOthers = try await plans.signers(besides: demand.request)
            if mayWait { _ = try await plans.record(demand, isAnew: false, by: actor, now: now) }
            throw unapproved
        }
    }

    /// Returns the limits for the number of devices. `nil` if any number is allowed.
    private func limits(_ reach: Int, isWeighed: Bool, isPassedOver: Bool) -> ReachLimits? {
        let most = isWeighed ? brake.map { ReachLimits.most(forReach: reach, $0) } : nil
        let bound = approvals?.most(forReach: reach, isPassedOver: isPassedOver)
        return most == nil && bound == nil ? nil : ReachLimits(reach: reach, most: most, bound: bound)
    }

    /// Returns the run of an occurrence, or `nil` if it has none.
    ///
    /// - Parameter plan: the plan that an unfinished run must match.
    package func known(_ campaign: String, occurrence: String, plan: PlanToken? = nil) async throws -> Run? {
        guard let known = try await store.run(campaign: campaign, occurrence: occurrence) else { return nil }
        // The run's audience is frozen, so take reach and digest from the plan, and compare only the definition.
        if let plan, !known.state.isFinal,
            let drift = PlanDrift(
                from: plan, to: try PlanToken(known.definition, reach: plan.reach, digest: plan.digest),
                known.definition.campaign)
        {
            throw drift
        }
        return known
    }

    /// Returns the unfinished runs that a timer created for a campaign.
    ///
    /// - Parameter occurrence: the occurrence that the call stands for; `nil` if the call creates no run.
    package func unfinished(of campaign: String, occurrence: String?) async throws -> UnfinishedRuns {
        UnfinishedRuns(
            try await store.unfinishedRuns(campaign: campaign, occurrencePrefix: TimerOccurrence.prefix),
            occurrence: occurrence)
    }

    /// Returns the latest unfinished run of a campaign, however it was started.
    package func latestUnfinished(of campaign: String) async throws -> Run? {
        let filter = RunFilter(campaign: campaign, states: Set(RunState.unfinished))
        return try await store.runs(filter, before: nil, limit: 1).first
    }

    /// Counts the devices that a run would be sent to if it started now.
    ///
    /// - Parameter counted: the audience, if the caller has counted it already.
    package func reach(of definition: RunDefinition, counted: Reach? = nil, now: Timestamp) async throws -> Reach {
        if let counted { return counted }
        return try await store.reach(
            of: definition.campaign, budget: nil, waves: RecipientWaves(definition, startedAt: now), now: now)
    }

    /// Returns the devices that a run would skip because their environment has no key. Counts the audience only if an
    /// environment has none, and the caller has not counted it.
    package func keyless(
        of definition: RunDefinition, app: Configuration.App, counted: Reach? = nil, now: Timestamp
    ) async throws -> [KeylessDevices] {
        let keyed = app.credential.environments
        guard keyed.count < PushEnvironment.allCases.count else { return [] }
        return KeylessDevices.all(in: try await reach(of: definition, counted: counted, now: now), keyed: keyed)
    }

    private func check(
        _ definition: RunDefinition, occurrence: String, plan: PlanToken?, files: [String: String], counted: Reach?,
        now: Timestamp
    ) async throws -> (refusals: [GuardRefusal], reach: Reach?, planned: SegmentContents?) {
        let campaign = definition.campaign
        let unfit = GuardRefusal.check(definition)
        guard unfit.isEmpty else { return (unfit, counted, nil) }
        let hasSeeds = campaign.stages?.contains { $0.seeds != nil } ?? false
        guard approvals != nil || brake != nil || plan != nil || hasSeeds || campaign.guards != Campaign.Guards() else {
            return ([], counted, nil)
        }
        let reach = try await reach(of: definition, counted: counted, now: now)
        var planned: SegmentContents?
        if let plan {
            let (now, segments) = try await token(definition, occurrence, reach.total, files, as: plan)
            if let drift = PlanDrift(from: plan, to: now, campaign) { throw drift }
            // The freeze, which may come much later, compares the segments again.
            planned = segments
        }
        let previous =
            campaign.guards.maxGrowthPercent == nil
            ? nil : try await PreviousRun.find(campaign: campaign.name, in: store)
        return (GuardRefusal.check(campaign, reach, previous: previous), reach, planned)
    }
}

extension StartRun {
    /// Returns the current token of a plan. `fanfare plan` makes the token valid for any moment, and `fanfare
    /// approvals` for its occurrence only.
    private func token(
        _ definition: RunDefinition, _ occurrence: String, _ reach: Int, _ files: [String: String],
        as plan: PlanToken
    ) async throws -> (PlanToken, SegmentContents) {
        func token(_ occurrence: String) async throws -> (PlanToken, SegmentContents) {
            let digest = try await PlanDigest(
                of: definition, occurrence: occurrence, in: store, approvals, files: files)
            return (try PlanToken(definition, reach: reach, digest: digest.text), digest.segments)
        }
        let own = try await token(occurrence)
        return occurrence.isEmpty || own.0.digest == plan.digest ? own : try await token("")
    }
}

extension VolumeRequest {
    /// Returns the facts of a run that the volume brake weighs. `nil` without a brake.
    static func weighing(
        _ campaign: Campaign, reach: Int, _ brake: Configuration.VolumeBrake?, by actor: Actor?,
        in store: any RunLog & OutcomeReader
    ) async throws -> VolumeRequest? {
        guard let brake else { return nil }
        var request = VolumeRequest(
            brake: brake, campaign: campaign.name, actor: actor?.origin == .daemon ? nil : actor?.name, reach: reach)
        if case .named(let name) = campaign.schedule?.zone, let zone = TimeZone(identifier: name) {
            request.zone = zone
        }
        if brake.maxGrowthPercent != nil {
            request.previous = try await PreviousRun.find(campaign: campaign.name, in: store).map {
                VolumeRequest.Previous(run: $0.run.id, reach: $0.reach)
            }
        }
        return request
    }
}

/// The rules for occurrence names that a person or a script gives. Two different names that look the same would
/// start two runs.
package enum OccurrenceName {
    private static let bytesMax = 1000

    /// Returns the problem in words, with the name that was probably meant. `nil` if there is no problem.
    package static func problem(with name: String) -> String? {
        guard name.utf8.count <= bytesMax else {
            return
                "the occurrence's name has \(name.utf8.count.grouped) bytes, but the limit is \(bytesMax); shorten it"
        }
        guard let plain = PlainName.advice(for: name) else { return name.isEmpty ? nameless : nil }
        return plain.isEmpty
            ? nameless
            : "the occurrence \"\(name)\" has invisible or confusable characters, and would start a second run "
                + "beside \"\(plain)\"; write \"\(plain)\""
    }

    private static let nameless =
        "the occurrence's name is empty, perhaps from an empty script variable; give a name, such as episode-42, or "
        + "omit --occurrence"
}

/// An occurrence of a campaign's schedule that a caller named, to be sent as the daemon would send it.
package struct ScheduledOccurrence {
    package let definition: RunDefinition
    /// The key as the daemon writes it, even if the caller wrote it differently.
    package var key: String { occurrence.key }
    private let occurrence: Occurrence

    /// Returns `nil` if the schedule has no occurrence of this name.
    package init?(_ definition: RunDefinition, named name: String?) {
        guard let name, let timetable = definition.campaign.schedule.flatMap(Timetable.init),
            let occurrence = timetable.occurrence(named: name)
        else { return nil }
        self.occurrence = occurrence
        self.definition = definition.planned(for: occurrence)
    }

    /// Records an occurrence that is found too late as missed, and returns its run. Returns `nil` if the occurrence
    /// may be sent. Throws if it is not due yet, or if only an unconfirmed wall clock makes it missed, see
    /// ``ConfirmedTime``.
    package func missed(in store: any RunLog & AuditLog, by actor: Actor, now: Timestamp) async throws -> Run? {
        let campaign = definition.campaign.name
        let time = ConfirmedTime(now, after: try await store.clockSteps(since: now - ConfirmedTime.confirmedAfter * 2))
        guard occurrence.startsAt <= time.moment else {
            throw Failure(
                .tryAgain,
                "occurrence \(occurrence.key) of \(campaign) starts at \(occurrence.startsAt.iso8601); leave out "
                    + "--occurrence to send now")
        }
        guard now > occurrence.missedAfter else { return nil }
        guard time.moment > occurrence.missedAfter else {
            throw Failure(
                .tryAgain,
                "occurrence \(occurrence.key) of \(campaign) was missed because the wall clock was just set forward; "
                    + "check the clock, and run the same command again in \(WrittenDuration.text(time.wait))")
        }
        _ = try await store.createEndedRun(
            definition, occurrence: occurrence.key, state: .missed, reason: occurrence.lateness(at: now), now: now,
            by: actor)
        return try await store.run(campaign: campaign, occurrence: occurrence.key)
    }
}

extension Occurrence {
    /// Returns the reason why the occurrence is missed, in words.
    package func lateness(at now: Timestamp) -> String {
        "found \(WrittenDuration.text(now - lastStartsAt)) after its time; late_by_max is "
            + WrittenDuration.text(missedAfter - lastStartsAt)
    }
}
