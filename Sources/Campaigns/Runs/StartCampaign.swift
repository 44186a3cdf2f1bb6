package import Model
import Rendering
import Sending
package import Store

/// Starts a campaign on request.
///
/// - A recorded run continues as it was frozen, even if its file has changed.
/// - A scheduled occurrence becomes the run that the daemon would create.
/// - Anything else becomes a run planned for now.
package struct StartCampaign: Sendable {
    private let store: any ApprovePlans.PlanStore
    private let runs: FollowRuns
    private let configuration: Configuration
    private var starting: StartRun {
        StartRun(store: store, approvals: configuration.approvals, brake: configuration.volumeBrake)
    }

    package init(
        store: any ApprovePlans.PlanStore, runs: FollowRuns,
        configuration: Configuration
    ) {
        self.store = store
        self.runs = runs
        self.configuration = configuration
    }

    /// A campaign that is ready to start: it can be rendered, and its app is known.
    package struct Prepared {
        package fileprivate(set) var definition: RunDefinition
        package let app: Configuration.App
        /// The audience; `nil` until it is counted, which happens once for each start.
        fileprivate var reach: Reach?
        fileprivate let scheduled: ScheduledOccurrence?

        /// Whether the occurrence is one of the campaign's schedule.
        package var isScheduled: Bool { scheduled != nil }
    }

    /// The result of a start.
    package struct Started: Sendable {
        package var run: Run
        /// `false` if the occurrence already had this run.
        package var isNew: Bool
        /// Descriptions of the devices that the run cannot reach, and of values that are probably mistakes.
        package var warnings: [String]

        package init(run: Run, isNew: Bool, warnings: [String]) {
            self.run = run
            self.isNew = isNew
            self.warnings = warnings
        }

        package var result: StartedResult { StartedResult(run: RunResult(run), isNew: isNew, warnings: warnings) }
    }

    /// Checks that a campaign may start: no stop is in force, it can be rendered, and its app is known.
    ///
    /// - Parameters:
    ///   - typed: the variables whose values the caller gives. At a start of the schedule, all others have the values
    ///     that a person gave for it.
    ///   - occurrence: the occurrence as the caller named it; `nil` for a new one.
    package func prepare(
        _ given: RunDefinition, typed: Set<String>, occurrence: String?
    ) async throws -> Prepared {
        try await runs.requireNoStop(campaign: given.campaign.name)
        var scheduled = ScheduledOccurrence(given, named: occurrence)
        if let key = scheduled?.key {
            let definition = try await store.definition(given, typed: typed, occurrence: key)
            scheduled = ScheduledOccurrence(definition, named: occurrence)
        }
        let definition = scheduled?.definition ?? given
        _ = try VariantRenderers(definition)
        return Prepared(
            definition: definition, app: try configuration.app(for: definition.campaign.topic), scheduled: scheduled)
    }

    /// Counts the devices that the run would be sent to if it started now.
    package func reach(of prepared: inout Prepared, now: Timestamp) async throws -> Reach {
        let reach = try await starting.reach(of: prepared.definition, counted: prepared.reach, now: now)
        prepared.reach = reach
        return reach
    }

    /// Returns the run that has just sent the same content; `nil` if there is none, or if the schedule sends it.
    package func earlier(_ prepared: Prepared, now: Timestamp) async throws -> EarlierSend? {
        guard prepared.scheduled == nil else { return nil }
        return try await EarlierSend.find(prepared.definition, in: store, now: now)
    }

    /// Returns the name of a send that got none, see ``DefaultOccurrence``.
    package func name(of definition: RunDefinition, now: Timestamp) async throws -> String {
        try await DefaultOccurrence.name(of: definition, in: store, now: now)
    }

    /// Returns the run that an occurrence has, or `nil`. Throws ``PlanDrift`` if the run does not match the plan.
    package func known(_ campaign: String, occurrence: String, plan: PlanToken?) async throws -> Run? {
        try await starting.known(campaign, occurrence: occurrence, plan: plan)
    }

    /// Returns the unfinished runs that a timer created for a campaign, see ``StartRun/unfinished(of:occurrence:)``.
    package func unfinished(of campaign: String, occurrence: String?) async throws -> UnfinishedRuns {
        try await starting.unfinished(of: campaign, occurrence: occurrence)
    }

    /// Returns the latest unfinished run of a campaign, however it was started.
    package func latestUnfinished(of campaign: String) async throws -> Run? {
        try await starting.latestUnfinished(of: campaign)
    }

    /// Records a scheduled occurrence that is found too late as missed, and returns its run. Returns `nil` if the
    /// occurrence may be sent.
    package func missed(_ prepared: Prepared, by actor: Actor, now: Timestamp) async throws -> Run? {
        guard let scheduled = prepared.scheduled else { return nil }
        try await runs.noteClock(by: actor)
        return try await scheduled.missed(in: store, by: actor, now: now)
    }

    /// - Parameters:
    ///   - occurrence: the key of the occurrence. A scheduled occurrence keeps the key that was prepared.
    ///   - plan: the plan that a person has seen, and that the run must match.
    ///   - overriding: the guards that the caller decided to override.
    ///   - files: the hashes of the files, for the audit log.
    ///   - refusesRepeats: whether to refuse content that was just sent, see ``EarlierSend``.
    ///   - emergencyOverride: the reason to start without the required approvals; `nil` if the run needs no emergency
    ///     override.
    ///   - ready: called when the guards have passed, before anything is written. If it throws, there is no run.
    package func start(
        _ prepared: Prepared, occurrence: String, by actor: Actor, now: Timestamp, plan: PlanToken? = nil,
        overriding: Set<GuardName> = [], files: [String: String] = [:], refusesRepeats: Bool = false,
        emergencyOverride: String? = nil, ready: () async throws -> Void = {}
    ) async throws -> Started {
        var definition = prepared.definition
        if prepared.scheduled == nil { definition.plannedAt = now }
        let (run, isNew, reach) = try await starting.start(
            definition, occurrence: prepared.scheduled?.key ?? occurrence, by: actor, now: now, plan: plan,
            overriding: overriding, files: files,
            refusesRepeats: refusesRepeats && prepared.scheduled == nil, isScheduled: prepared.scheduled != nil,
            emergencyOverride: emergencyOverride, counted: prepared.reach, ready: ready)
        let keyless = try await starting.keyless(of: run.definition, app: prepared.app, counted: reach, now: now)
        return Started(run: run, isNew: isNew, warnings: keyless.map(\.description))
    }
}

/// Starts from files, for callers that leave the sending to the daemon.
extension StartCampaign {
    /// The parameters of a start, as a request states them.
    package struct Order: Sendable {
        /// The idempotency key: the same occurrence always means the same run.
        package var occurrence: String
        package var variables: [String: String]
        package var plan: PlanToken?
        package var overriding: Set<GuardName>
        /// Whether to refuse content that was just sent, see ``EarlierSend``.
        package var refusesRepeats: Bool

        package init(
            occurrence: String, variables: [String: String] = [:], plan: PlanToken? = nil,
            overriding: Set<GuardName> = [], refusesRepeats: Bool = false
        ) {
            self.refusesRepeats = refusesRepeats
            self.occurrence = occurrence
            self.variables = variables
            self.plan = plan
            self.overriding = overriding
        }
    }

    /// Starts a campaign from its file. Throws if the occurrence was missed or refused, by this call or earlier.
    ///
    /// - Parameters:
    ///   - name: the name of the campaign's file.
    ///   - isAllowed: receives the app's topic before anything else about the campaign is disclosed. Throws if the
    ///     caller may not see the topic.
    package func start(
        _ name: String, in files: ManageFiles, _ order: Order, by actor: Actor, now: Timestamp,
        isAllowed: (_ topic: String) throws -> Void
    ) async throws -> Started {
        if let known = try await known(name, order, isAllowed) { return known }
        try isAllowed(try files.topic(ofCampaign: name) ?? "")
        let source = try files.source(name)
        // A save since the first check may have moved the file to another app.
        try isAllowed(source.campaign.topic)
        if source.campaign.name != name, let known = try await known(source.campaign.name, order, isAllowed) {
            return known
        }
        let definition = try source.definition(with: order.variables, plannedAt: now)
        let prepared = try await prepare(
            definition, typed: Set(order.variables.keys), occurrence: order.occurrence)
        if let missed = try await missed(prepared, by: actor, now: now) {
            try requireSent(missed)
        }
        var started = try await start(
            prepared, occurrence: order.occurrence, by: actor, now: now, plan: order.plan,
            overriding: order.overriding, files: source.hashes, refusesRepeats: order.refusesRepeats)
        if started.isNew { started.warnings += started.run.definition.lintOfValues().map(\.description) }
        return started
    }

    /// Returns the run that already has this occurrence, or `nil` if there is none.
    package func sent(_ name: String, in files: ManageFiles, occurrence: String) async throws -> Run? {
        if let run = try await store.run(campaign: name, occurrence: occurrence) { return run }
        guard let own = try? files.source(name).campaign.name, own != name else { return nil }
        return try await store.run(campaign: own, occurrence: occurrence)
    }

    private func known(
        _ campaign: String, _ order: Order, _ isAllowed: (_ topic: String) throws -> Void
    ) async throws -> Started? {
        guard let run = try await store.run(campaign: campaign, occurrence: order.occurrence) else { return nil }
        try isAllowed(run.definition.campaign.topic)
        _ = try await starting.known(campaign, occurrence: order.occurrence, plan: order.plan)
        try requireSent(run)
        return Started(run: run, isNew: false, warnings: [])
    }

    /// Throws if the occurrence was missed or refused: the run is over, and was not sent.
    private func requireSent(_ run: Run) throws {
        switch RunEnd(run) {
        case .missed?, .refused?: if let failure = RunEnd(run)?.failure(of: run, runs) { throw failure }
        default: break
        }
    }
}

/// The stable shape of a run that was started; keys are written in snake_case.
package struct StartedResult: Codable, Hashable, Sendable {
    package var run: RunResult
    /// `false` if the occurrence already had this run, and nothing was done.
    package var isNew: Bool
    /// Descriptions of the devices that the run cannot reach, and of values that are probably mistakes.
    package var warnings: [String]
}
