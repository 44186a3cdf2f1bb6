package import Model
import Sending
package import Store

/// Starts a campaign as somebody asks for it. What is on record goes on as it was frozen, whatever has become of its file;
/// an occurrence of the schedule becomes what the daemon would make of it; anything else is a run of this moment.
package struct StartCampaign: Sendable {
    private let store: any RunLog & DeviceRegistry & OutcomeReader & ApprovalLog
    private let runs: FollowRuns
    private let configuration: Configuration
    private var starting: StartRun {
        StartRun(store: store, approvals: configuration.approvals, brake: configuration.volumeBrake)
    }

    package init(
        store: any RunLog & DeviceRegistry & OutcomeReader & ApprovalLog, runs: FollowRuns,
        configuration: Configuration
    ) {
        self.store = store
        self.runs = runs
        self.configuration = configuration
    }

    /// What is about to be started: it can be rendered, and its app is known.
    package struct Prepared {
        package fileprivate(set) var definition: RunDefinition
        package let app: Configuration.App
        fileprivate let scheduled: ScheduledOccurrence?
    }

    /// What became of a start.
    package struct Started: Sendable {
        package var run: Run
        /// False: the occurrence had this run already.
        package var isNew: Bool
        /// Devices that it cannot be sent to, and what is doubtful about the values of its variables, in words.
        package var warnings: [String]

        package init(run: Run, isNew: Bool, warnings: [String]) {
            self.run = run
            self.isNew = isNew
            self.warnings = warnings
        }

        package var result: StartedResult { StartedResult(run: RunResult(run), isNew: isNew, warnings: warnings) }
    }

    /// - Parameter occurrence: as somebody named it; nil: a new one.
    package func prepare(_ given: RunDefinition, occurrence: String?) throws -> Prepared {
        let scheduled = ScheduledOccurrence(given, named: occurrence)
        let definition = scheduled?.definition ?? given
        _ = try VariantRenderers(definition)
        return Prepared(
            definition: definition, app: try configuration.app(for: definition.campaign.topic), scheduled: scheduled)
    }

    /// The run of a scheduled occurrence that is found too late, put on record as missed; nil: it may be sent.
    package func missed(_ prepared: Prepared, by actor: Actor, now: Timestamp) async throws -> Run? {
        guard let scheduled = prepared.scheduled else { return nil }
        try await runs.noteClock(by: actor)
        return try await scheduled.missed(in: store, by: actor, now: now)
    }

    /// - Parameters:
    ///   - occurrence: its key; of the schedule's the one that was prepared.
    ///   - plan: what was shown to a person, to be held to.
    ///   - overriding: guards that somebody decided to pass over.
    ///   - files: hashes of the files, for the record.
    ///   - brokenGlass: why it starts without the signatures that it needs; nil: it does not.
    package func start(
        _ prepared: Prepared, occurrence: String, by actor: Actor, now: Timestamp, plan: PlanToken? = nil,
        overriding: Set<GuardName> = [], files: [String: String] = [:], brokenGlass: String? = nil
    ) async throws -> Started {
        var definition = prepared.definition
        try await runs.requireNoStop(campaign: definition.campaign.name)
        if prepared.scheduled == nil { definition.plannedAt = now }
        let (run, isNew) = try await starting.start(
            definition, occurrence: prepared.scheduled?.key ?? occurrence, by: actor, now: now, plan: plan,
            overriding: overriding, files: files, isScheduled: prepared.scheduled != nil, brokenGlass: brokenGlass)
        let keyless = try await starting.keyless(of: run.definition, app: prepared.app, now: now)
        return Started(run: run, isNew: isNew, warnings: keyless.map(\.description))
    }
}

/// From files, for whoever leaves the sending to the daemon.
extension StartCampaign {
    /// What is asked for, as a request says it.
    package struct Order: Sendable {
        /// Names it for ever: the same again is the same run.
        package var occurrence: String
        package var variables: [String: String]
        package var plan: PlanToken?
        package var overriding: Set<GuardName>

        package init(
            occurrence: String, variables: [String: String] = [:], plan: PlanToken? = nil,
            overriding: Set<GuardName> = []
        ) {
            self.occurrence = occurrence
            self.variables = variables
            self.plan = plan
            self.overriding = overriding
        }
    }

    /// Throws for an occurrence that was missed or refused, now or before.
    ///
    /// - Parameters:
    ///   - name: of the campaign's file.
    ///   - isAllowed: told the app's topic, before anything else is said of the campaign; throws where it is another's.
    package func start(
        _ name: String, in files: ManageFiles, _ order: Order, by actor: Actor, now: Timestamp,
        isAllowed: (_ topic: String) throws -> Void
    ) async throws -> Started {
        if let known = try await known(name, order, isAllowed) { return known }
        try isAllowed(try files.topic(ofCampaign: name) ?? "")
        let source = try files.source(name)
        if source.campaign.name != name, let known = try await known(source.campaign.name, order, isAllowed) {
            return known
        }
        let definition = try source.definition(with: order.variables, plannedAt: now)
        let prepared = try prepare(definition, occurrence: order.occurrence)
        if let missed = try await missed(prepared, by: actor, now: now) {
            try requireSent(missed)
        }
        var started = try await start(
            prepared, occurrence: order.occurrence, by: actor, now: now, plan: order.plan,
            overriding: order.overriding, files: try source.hashes)
        if started.isNew { started.warnings += started.run.definition.lintOfValues().map(\.description) }
        return started
    }

    /// Returns the run that has the name already; `nil`: none has it.
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

    /// An occurrence that came too late or was refused is over, and was not sent.
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
    /// False: the occurrence had this run already, and nothing was done.
    package var isNew: Bool
    /// Devices that it cannot be sent to, and what is doubtful about the values of its variables, in words.
    package var warnings: [String]
}
