import Foundation
package import Model
package import Store

/// Keeps the plans that people make, and says what may become of each.
package struct KeepPlans: Sendable {
    private let store: any ApprovePlans.PlanStore & PlanLog
    private let approving: ApprovePlans
    private let rules: ApprovalRules?

    package init(store: any ApprovePlans.PlanStore & PlanLog, rules: ApprovalRules?) {
        self.store = store
        self.rules = rules
        approving = ApprovePlans(store: store, rules: rules)
    }

    /// The next step of a kept plan.
    package enum Step: Hashable, Sendable {
        /// These variables have no value.
        case incomplete([String])
        /// The campaign's schedule starts it. It needs the signatures of this rule, which a person may request ahead
        /// and the daemon requests at its time; `nil` if it needs none.
        case scheduled(ApprovalRules.Rule?)
        /// It may be sent now.
        case ready
        /// No signature permits a plan of this size. The text says why.
        case refused(String)
        /// A person must ask for approval first. The text says whose.
        case needsApproval(String)
        /// The request has too few signatures.
        case awaitingApproval(ApprovalResult)
        /// It has all signatures, and may be sent. The schedule sends a scheduled one.
        case approved(ApprovalResult)
        case rejected(ApprovalResult)
        /// The files have changed since, see ``isCurrent(_:in:)``.
        case outdated
        /// A run has the plan's name.
        case sent(Run)
    }

    /// Keeps a plan with a name for its send.
    ///
    /// - Parameter file: the name of the campaign's file.
    package func keep(
        _ planned: PlanCampaign.Planned, file: String, by actor: Actor, now: Timestamp
    ) async throws -> SavedPlan {
        let definition = planned.plan.definition
        let name: String
        if let occurrence = planned.occurrence {
            name = occurrence
        } else {
            name = try await DefaultOccurrence.name(of: definition, in: store, now: now)
        }
        let isComplete = planned.unset.isEmpty
        var plan = SavedPlan(
            file: file, occurrence: name, isScheduled: planned.occurrence != nil,
            token: isComplete ? planned.plan.token.description : nil, digest: planned.plan.digest,
            definition: definition, shown: try ResultJSON.text(planned.result), madeAt: now, madeBy: actor.name,
            maker: actor.identity)
        plan.id = try await store.savePlan(plan)
        return plan
    }

    /// Returns `nil` if there is no such plan, or no longer.
    package func plan(_ id: Int64) async throws -> SavedPlan? { try await store.savedPlan(id) }

    /// Returns the newest plan that an approval with this digest is for; `nil` if none was kept.
    package func plan(digest: String) async throws -> SavedPlan? { try await store.savedPlan(digest: digest) }

    /// Returns plans, the newest first.
    package func plans(file: String?, before id: Int64? = nil, limit: Int) async throws -> [SavedPlan] {
        try await store.savedPlans(file: file, before: id, limit: limit)
    }

    /// Returns plans with their states, the newest first.
    package func results(file: String?, limit: Int, now: Timestamp) async throws -> [SavedPlanResult] {
        var results: [SavedPlanResult] = []
        for plan in try await plans(file: file, limit: limit) {
            results.append(try SavedPlanResult(plan, try await step(of: plan, now: now)))
        }
        return results
    }

    package func step(of plan: SavedPlan, now: Timestamp) async throws -> Step {
        let campaign = plan.definition.campaign.name
        if let run = try await store.run(campaign: campaign, occurrence: plan.occurrence) { return .sent(run) }
        if plan.isScheduled {
            let reach = try plan.result.reach
            guard let rules, let rule = rules.rule(forReach: reach), plan.token != nil else { return .scheduled(nil) }
            // Signatures on a plan of the schedule cover its occurrence, too.
            let digest = try await approving.digest(plan.definition, plan.occurrence, [:]).text
            let step = try await approving.step(
                campaign: campaign, occurrence: plan.occurrence, digest: digest, reach: reach, now: now)
            if case .needsApproval = step { return .scheduled(rule) }
            return step
        }
        guard let token = plan.token.flatMap(PlanToken.init) else { return .incomplete(try plan.result.unsetVariables) }
        return try await approving.step(campaign: campaign, digest: plan.digest, reach: token.reach, now: now)
    }

    /// Gives the send of a kept plan the name that it was started under.
    package func setOccurrence(_ occurrence: String, of plan: SavedPlan) async throws {
        guard occurrence != plan.occurrence else { return }
        try await store.renamePlan(plan.id, to: occurrence)
    }

    /// Returns whether a refused start has requested the approval that it needs.
    package static func hasAsked(_ error: any Error) -> Bool { (error as? Unapproved)?.isWaiting == true }

    /// Requests approval of a kept plan. Throws if its files or segments have changed since it was made. A plan of the
    /// campaign's schedule is signed for its occurrence, which then starts at its time.
    ///
    /// - Parameter note: what the asker tells the approvers; `nil` if nothing.
    package func ask(
        _ plan: SavedPlan, note: String? = nil, in files: ManageFiles, by actor: Actor, now: Timestamp
    ) async throws {
        let source = try files.source(plan.file)
        // The schedule sends the values that a person gave for the start, or the defaults of the file.
        let given = plan.isScheduled ? try await given(plan) : plan.definition.variables
        let values = source.campaign.declared(given)
        var definition = try source.definition(with: values, plannedAt: now)
        if plan.isScheduled {
            guard let scheduled = ScheduledOccurrence(definition, named: plan.occurrence) else {
                throw Failure(
                    .refused,
                    "the schedule of \(plan.file) has no occurrence \(plan.occurrence) any more; plan it again")
            }
            definition = scheduled.definition
        }
        guard !plan.isScheduled || definition.variables == plan.definition.variables else {
            throw Failure(
                .refused,
                "the schedule does not send the values of this plan; give the start these values first, or plan it "
                    + "again")
        }
        guard try await approving.digest(definition, "", source.hashes).text == plan.digest else {
            throw Failure(
                .refused,
                "the campaign \(plan.file), a template or a segment has changed since the plan was made; plan it again, "
                    + "and request approval of the new plan")
        }
        let reach = try await approving.reach(of: definition, now: now)
        _ = try await approving.ask(
            definition, occurrence: plan.isScheduled ? plan.occurrence : "", reach: reach, note: note, by: actor,
            now: now, files: source.hashes, authors: [plan.maker])
    }

    /// Returns the values that a person gave for the start that a plan shows.
    private func given(_ plan: SavedPlan) async throws -> [String: String] {
        try await store.values(campaign: plan.definition.campaign.name, occurrence: plan.occurrence)?.variables ?? [:]
    }

    /// Returns whether the schedule would send other values than a plan of one of its starts shows.
    package func differsFromSchedule(_ plan: SavedPlan) async throws -> Bool {
        guard plan.isScheduled, plan.token != nil else { return false }
        let campaign = plan.definition.campaign
        return campaign.variables.merging(campaign.declared(try await given(plan))) { $1 } != plan.definition.variables
    }

    /// Returns whether the files still define what the plan shows.
    package func isCurrent(_ plan: SavedPlan, in files: ManageFiles) -> Bool {
        guard let source = try? files.source(plan.file),
            let definition = try? source.definition(with: plan.definition.variables, plannedAt: plan.madeAt),
            let now = try? ContentHash(definition), let then = try? ContentHash(plan.definition)
        else { return false }
        return now == then
    }
}

extension ApprovePlans {
    /// Returns the next step of a complete plan.
    ///
    /// - Parameters:
    ///   - occurrence: the occurrence of the campaign's schedule; empty for a plan that a person starts.
    ///   - digest: the complete digest, in hex.
    func step(
        campaign: String, occurrence: String = "", digest: String, reach: Int, now: Timestamp
    ) async throws -> KeepPlans.Step {
        switch try await latest(campaign: campaign, occurrence: occurrence, digest: digest, now: now) {
        case let asked? where asked.state == ApprovalRequest.State.rejected.rawValue: return .rejected(asked)
        case let asked? where asked.isOutdated == true: return .outdated
        case let asked? where asked.isOpen:
            return asked.missing == 0 ? .approved(asked) : .awaitingApproval(asked)
        default:
            guard let rules, let summary = rules.summary(forReach: reach) else { return .ready }
            return rules.ceiling.map { reach > $0 } == true ? .refused(summary) : .needsApproval(summary)
        }
    }
}

extension KeepPlans.Step {
    /// The state in a few words.
    package var summary: String {
        switch self {
        case .incomplete: "incomplete"
        case .scheduled: "scheduled"
        case .ready: "ready to send"
        case .refused: "too large"
        case .needsApproval: "needs approval"
        case .awaitingApproval(let asked), .approved(let asked): asked.stateSummary
        case .rejected: "rejected"
        case .outdated: "outdated"
        case .sent(let run): "sent as run \(run.id)"
        }
    }
}

/// The stable shape of a list of plans; keys are written in snake_case.
package struct PlanListResult: Codable, Hashable, Sendable {
    package var plans: [SavedPlanResult]

    package init(plans: [SavedPlanResult]) {
        self.plans = plans
    }
}

/// The stable shape of a kept plan; keys are written in snake_case.
package struct SavedPlanResult: Codable, Hashable, Sendable {
    /// The number.
    package var plan: Int64
    /// The name of the campaign's file.
    package var campaign: String
    /// The name of the send.
    package var occurrence: String
    /// The state in words.
    package var state: String
    /// The run that was started from the plan; absent if there is none.
    package var run: Int64?
    /// Absent while a variable has no value.
    package var hash: String?
    package var variables: [String: String]
    /// The devices that the plan reached when it was made.
    package var reach: Int
    /// The first words that a phone shows; absent for a push that shows none of its own.
    package var excerpt: String?
    package var madeAt: String
    package var madeBy: String

    init(_ plan: SavedPlan, _ step: KeepPlans.Step) throws {
        self.plan = plan.id
        (campaign, occurrence) = (plan.file, plan.occurrence)
        state = step.summary
        if case .sent(let sent) = step { run = sent.id }
        hash = plan.token
        variables = plan.definition.variables
        reach = try plan.result.reach
        excerpt = plan.definition.excerpt(in: [])
        (madeAt, madeBy) = (plan.madeAt.iso8601, plan.madeBy)
    }
}

extension SavedPlan {
    /// What the person saw.
    package var result: PlanResult {
        get throws { try ResultJSON.value(PlanResult.self, from: shown) }
    }
}
