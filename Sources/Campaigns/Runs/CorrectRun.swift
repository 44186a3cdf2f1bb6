import CampaignFiles
package import Model
import Rendering
package import Store

/// Corrects what a run sent: replaces the alert that is still on the screens, or removes it. The correction is a run of
/// its own. It goes only to devices that the run reached or may have reached, the last of them first.
package struct CorrectRun: Sendable {
    package typealias CorrectableStore = ApprovePlans.PlanStore & DeliveryQueue

    /// The parameters of a correction.
    package struct Order: Sendable {
        package var kind: Correction.Kind
        /// The template of a replacement; `nil` for the one that the campaign prepared.
        package var template: String?
        package var variables: [String: String]
        /// Whether to send another correction after an earlier one, perhaps with another text.
        package var isAgain: Bool
        /// The reason to send an unprepared text to many devices without approvals; `nil` if there is none.
        package var reason: String?

        package init(
            _ kind: Correction.Kind, template: String? = nil, variables: [String: String] = [:],
            isAgain: Bool = false, reason: String? = nil
        ) {
            self.reason = reason.flatMap { $0.contains { !$0.isWhitespace } ? $0 : nil }
            self.kind = kind
            self.template = template
            self.variables = variables
            self.isAgain = isAgain
        }
    }

    /// A correction that is ready to start.
    package struct Prepared: Sendable {
        package let definition: RunDefinition
        package let occurrence: String
        /// The number of stored devices that the run reached, or may have reached.
        package let devices: Int
        /// Their environments: `PRODUCTION: 18,812 devices`.
        package let sentTo: String
        package let warnings: [String]
        fileprivate let files: [String: String]
        /// The state of its approval: ``KeepPlans/Step/ready`` if it needs none.
        package let step: KeepPlans.Step
        /// The signatures that it needs; `nil` if it needs none.
        fileprivate let demand: ApprovalDemand?
        /// The reason to start without these signatures; `nil` if it starts with them.
        var reason: String?
    }

    let store: any CorrectableStore
    let runs: FollowRuns
    let templates: String
    let approvals: ApprovalRules?
    private var plans: ApprovePlans { ApprovePlans(store: store, rules: approvals) }

    /// - Parameters:
    ///   - templates: the folder of the templates.
    ///   - approvals: the configured rules; `nil` if nothing needs approvals.
    package init(
        store: any CorrectableStore, runs: FollowRuns, templates: String, approvals: ApprovalRules? = nil
    ) {
        self.store = store
        self.runs = runs
        self.templates = templates
        self.approvals = approvals
    }

    /// Prepares a correction. Throws any obstacle, such as a stop in force, before anything is written.
    ///
    /// - Parameters:
    ///   - isForApproval: whether the correction is prepared in order to ask for its approval, not to start.
    ///   - sees: whether the caller may see a template. Any other template counts as missing.
    package func prepare(
        _ run: Run, _ order: Order, isForApproval: Bool = false, by actor: Actor, now: Timestamp,
        sees: (_ template: String) -> Bool = { _ in true }
    ) async throws -> Prepared {
        let draft = try await draft(run, order, sees)
        let signatures = try await signatures(for: order, run, draft, by: actor)
        var prepared = try await prepare(draft, run, order, signatures, by: actor, now: now)
        guard case .missing(let mayOverride, let person) = signatures, !isForApproval else { return prepared }
        if case .approved = prepared.step { return prepared }
        prepared.reason = try overridingReason(order, run, draft, mayOverride: mayOverride, person)
        return prepared
    }

    /// A correction whose values are not checked yet.
    struct Draft {
        /// The campaign of the correction, with the settings of the corrected run.
        @Shared private(set) var campaign: Campaign
        @Shared private(set) var template: Template
        /// The hash of the template's file, by path; empty for a recall.
        let files: [String: String]
        let reached: ReachedDevices

        /// The number of stored devices that the run reached, or may have reached.
        var devices: Int { reached.stored }
    }

    func draft(_ run: Run, _ order: Order, _ sees: (_ template: String) -> Bool) async throws -> Draft {
        let (collapseID, reached) = try await requireCorrectable(run)
        var campaign = run.definition.campaign.asCorrection(order.kind, of: collapseID)
        guard order.kind == .replace else {
            return Draft(campaign: campaign, template: .recalling(collapseID), files: [:], reached: reached)
        }
        let name = try templateName(order, run)
        let (template, files) = try load(name, sees)
        campaign.template = name
        // A tap on the new text counts for the correction. An urgent correction is not refused for a template whose own
        // key is in the way of the reference.
        if !FeedbackCheck.hasOwnKey(template) { campaign.feedback = run.definition.campaign.feedback }
        return Draft(campaign: campaign, template: template, files: files, reached: reached)
    }

    func prepare(
        _ draft: Draft, _ run: Run, _ order: Order, _ signatures: Signatures, by actor: Actor, now: Timestamp
    ) async throws -> Prepared {
        var definition = RunDefinition(
            campaign: draft.campaign, template: draft.template,
            variables: try variables(order.variables, run, draft.template), plannedAt: now,
            correction: Correction(of: run.id, order.kind))
        definition.campaign.variables = definition.variables
        try requireFits(definition)
        if let refusal = GuardRefusal.check(definition).first { throw refusal }
        try await runs.requireNoStop(campaign: definition.campaign.name)
        let (occurrence, last) = try await occurrence(draft.campaign.name, run, isAgain: order.isAgain)
        if last == nil, order.kind == .replace { try requireOtherTexts(definition, than: run) }
        var (demand, step): (ApprovalDemand?, KeepPlans.Step) = (nil, .ready)
        if case .missing = signatures {
            demand = try await plans.demand(
                definition, occurrence: "", reach: draft.devices, by: actor, now: now, files: draft.files)
        }
        if let demand {
            step = try await plans.step(
                campaign: definition.campaign.name, digest: demand.request.digest, reach: draft.devices, now: now)
        }
        return Prepared(
            definition: definition, occurrence: occurrence, devices: draft.devices,
            sentTo: draft.reached.environmentSummary,
            warnings: warnings(run, draft.reached, draft.template, order.kind) + definition.lint().map(\.description),
            files: draft.files, step: step, demand: demand)
    }

    /// Requests approval of a correction, even of a rejected one. Throws if it needs none.
    ///
    /// - Parameter note: what the asker tells the approvers; `nil` if nothing.
    package func ask(
        _ prepared: Prepared, note: String? = nil, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        guard var demand = prepared.demand else {
            throw Failure(.refused, "the correction needs no approval; send it")
        }
        demand.request.note = try RecordedReason.given(note)
        return try await plans.result(plans.record(demand, isAnew: true, by: actor, now: now), now: now)
    }

    /// Records the correction as a run, which a sender still has to send.
    package func start(_ prepared: Prepared, by actor: Actor, now: Timestamp) async throws -> Run {
        // A stop may have come while a person considered the question.
        try await runs.requireNoStop(campaign: prepared.definition.campaign.name)
        let (run, isNew) = try await create(prepared, by: actor, now: now)
        guard isNew else {
            throw Failure(
                .refused,
                "another correction came first: run \(run.id) is \(run.campaign) \(run.occurrence), and its text may differ"
            )
        }
        return run
    }

    private func create(_ prepared: Prepared, by actor: Actor, now: Timestamp) async throws -> (run: Run, isNew: Bool) {
        if let demand = prepared.demand, prepared.reason == nil {
            return try await store.createApprovedRun(
                prepared.definition, occurrence: prepared.occurrence, now: now, by: actor, notes: [],
                files: prepared.files, demand: demand)
        }
        return try await store.createRun(
            prepared.definition, occurrence: prepared.occurrence, now: now, by: actor,
            notes: prepared.reason.map { [EventNote(kind: .overridden, detail: EmergencyOverride.summary($0))] } ?? [],
            files: prepared.files)
    }

    /// Prepares and starts a correction, for callers that leave the sending to the daemon.
    package func start(
        _ run: Run, _ order: Order, by actor: Actor, now: Timestamp, sees: (_ template: String) -> Bool
    ) async throws -> StartCampaign.Started {
        let prepared = try await prepare(run, order, by: actor, now: now, sees: sees)
        let started = try await start(prepared, by: actor, now: now)
        return StartCampaign.Started(run: started, isNew: true, warnings: prepared.warnings)
    }

    /// Returns whether pages offer to correct the run.
    package static func isOffered(for run: Run) -> Bool {
        run.definition.correction == nil && run.definition.campaign.collapse.hasID && run.counts.audience > 0
            && obstacle(to: run) == nil
    }

    /// Returns the corrections of a run, in the order in which they were created.
    package static func corrections(of run: Run, in store: any RunLog) async throws -> [Run] {
        var found: [Run] = []
        for kind in [Correction.Kind.replace, .recall] {
            let name = run.campaign + kind.suffix
            for number in 1... {
                let key = occurrenceKey(of: run.id, number)
                guard let correction = try await store.run(campaign: name, occurrence: key) else { break }
                found.append(correction)
            }
        }
        return found.sorted { $0.id < $1.id }
    }

    /// Returns the recall after which no correction has shown the notification again; `nil` if there is none.
    ///
    /// - Parameter corrections: those of one run, in the order in which they were created.
    package static func removal(by corrections: [Run]) -> Run? {
        corrections.last.flatMap { $0.definition.correction?.kind == .recall ? $0 : nil }
    }

    /// Returns whether the notification may be on the screens although a recall exists: a correction came after the
    /// last recall, or that recall did not finish.
    ///
    /// - Parameter corrections: those of one run, in the order in which they were created.
    package static func mayRecallAgain(after corrections: [Run]) -> Bool {
        guard let last = corrections.last(where: { $0.definition.correction?.kind == .recall }) else { return false }
        return removal(by: corrections) == nil || last.state.isFinal && last.state != .finished
    }

    /// Returns the corrections of a run, in the order in which they were created.
    package func corrections(of run: Run) async throws -> [Run] { try await Self.corrections(of: run, in: store) }

    private static func occurrenceKey(of run: Int64, _ number: Int) -> String {
        "run-\(run)" + (number == 1 ? "" : ".\(number)")
    }

    /// Returns the name of the next correction, and the last one that was sent.
    private func occurrence(
        _ campaign: String, _ run: Run, isAgain: Bool
    ) async throws -> (name: String, last: Run?) {
        var number = 1
        var last: Run?
        while let known = try await store.run(
            campaign: campaign, occurrence: Self.occurrenceKey(of: run.id, number))
        {
            last = known
            number += 1
        }
        if let last, !isAgain {
            throw Failure(
                .refused,
                "run \(last.id) (\(last.state.rawValue)) already exists as \(campaign) for run \(run.id); "
                    + (last.state.isFinal
                        ? "--again sends another one" : "`fanfare status \(last.id)` shows its progress"))
        }
        return (Self.occurrenceKey(of: run.id, number), last)
    }
}

extension Campaign {
    /// Returns a campaign with the settings of a correction, which is sent immediately and to all its devices.
    ///
    /// - Parameter collapseID: the collapse id of the alerts to correct.
    fileprivate func asCorrection(_ kind: Correction.Kind, of collapseID: String) -> Campaign {
        var campaign = Campaign(
            name: name + kind.suffix, topic: topic, pushType: kind == .recall ? .background : pushType,
            template: template)
        campaign.pace = pace
        campaign.onUnknown = onUnknown
        campaign.maxAttempts = maxAttempts
        guard kind == .replace else { return campaign }
        campaign.priority = priority
        // Keep the expiry: a device that is offline now still shows the old alert when it reconnects.
        if expiresAfter != .zero { campaign.expiresAfter = expiresAfter }
        campaign.collapse = .key(collapseID)
        return campaign
    }
}

extension Correction.Kind {
    /// The suffix that turns the corrected campaign's name into the correction's name.
    fileprivate var suffix: String {
        switch self {
        case .replace: ".correction"
        case .recall: ".recall"
        }
    }
}

extension RunDefinition {
    /// The name of the campaign whose files the run comes from: a correction has the files of the run that it corrects.
    package var campaignOfFiles: String {
        let name = campaign.name
        guard let suffix = correction?.kind.suffix, name.hasSuffix(suffix) else { return name }
        return String(name.dropLast(suffix.count))
    }
}

extension Template {
    /// Returns a template that wakes the app and names the notification to remove. `recall` is the identifier that the
    /// app passes to `removeDeliveredNotifications(withIdentifiers:)`.
    fileprivate static func recalling(_ collapseID: String) -> Template {
        var template = Template(name: "recall")
        template.contentAvailable = true
        template.custom = [TemplateValue.Member("recall", .text(TemplateText(literal: collapseID)))]
        return template
    }
}

/// The run that a correction corrects, and the kind of the correction; keys are written in snake_case.
package struct CorrectionResult: Codable, Hashable, Sendable {
    /// The corrected run.
    package var run: Int64
    /// `replace` or `recall`.
    package var kind: String

    package init(of run: Int64, _ kind: Correction.Kind) {
        self.run = run
        self.kind = kind.rawValue
    }

    init?(_ run: Run) {
        guard let correction = run.definition.correction else { return nil }
        self.init(of: correction.run, correction.kind)
    }
}
