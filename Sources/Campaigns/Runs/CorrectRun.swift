import CampaignFiles
package import Model
import Rendering
package import Store

/// Corrects what a run sent: replaces the alert that is still on the screens, or removes it. The correction is a run of
/// its own. It goes only to devices that the run reached or may have reached, the last of them first.
package struct CorrectRun: Sendable {
    package typealias CorrectableStore = RunLog & AuditLog & DeliveryQueue & OutcomeReader & ApprovalLog

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
        /// The reason to start without the approvals that a run of this size needs; `nil` if it needs none.
        fileprivate let reason: String?
    }

    private let store: any CorrectableStore
    private let runs: FollowRuns
    private let templates: String
    private let approvals: ApprovalRules?

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
    /// - Parameter sees: whether the caller may see a template. Any other template counts as missing.
    package func prepare(
        _ run: Run, _ order: Order, by actor: Actor, now: Timestamp, sees: (_ template: String) -> Bool = { _ in true }
    ) async throws -> Prepared {
        let (collapseID, reached) = try await requireCorrectable(run)
        let devices = reached.all - reached.gone
        let original = run.definition
        var campaign = original.campaign.asCorrection(order.kind, of: collapseID)
        let template: Template
        var files: [String: String] = [:]
        switch order.kind {
        case .replace:
            let name = try order.template ?? prepared(run)
            (template, files) = try load(name, sees)
            campaign.template = name
        case .recall:
            template = .recalling(collapseID)
        }
        let needsReason = try await needsSignatures(order, run, devices, files)
        if needsReason { try await requireReason(for: order, run, devices, by: actor) }
        var definition = RunDefinition(
            campaign: campaign, template: template,
            variables: try variables(order.variables, run, template), plannedAt: now,
            correction: Correction(of: run.id, order.kind))
        definition.campaign.variables = definition.variables
        try requireFits(definition)
        if let refusal = GuardRefusal.check(definition).first { throw refusal }
        try await runs.requireNoStop(campaign: definition.campaign.name)
        return Prepared(
            definition: definition, occurrence: try await occurrence(campaign.name, run, isAgain: order.isAgain),
            devices: devices, sentTo: reached.environmentSummary,
            warnings: warnings(run, reached, template, order.kind) + definition.lint().map(\.description), files: files,
            reason: needsReason ? try RecordedReason.checked(order.reason) : nil)
    }

    /// Records the correction as a run, which a sender still has to send.
    package func start(_ prepared: Prepared, by actor: Actor, now: Timestamp) async throws -> Run {
        // A stop may have come while a person considered the question.
        try await runs.requireNoStop(campaign: prepared.definition.campaign.name)
        let (run, isNew) = try await store.createRun(
            prepared.definition, occurrence: prepared.occurrence, now: now, by: actor,
            notes: prepared.reason.map { [EventNote(kind: .overridden, detail: EmergencyOverride.summary($0))] } ?? [],
            files: prepared.files)
        guard isNew else {
            throw Failure(
                .refused,
                "another correction came first: run \(run.id) is \(run.campaign) \(run.occurrence), and its text may differ"
            )
        }
        return run
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

    private static func occurrenceKey(of run: Int64, _ number: Int) -> String {
        "run-\(run)" + (number == 1 ? "" : ".\(number)")
    }

    private func occurrence(_ campaign: String, _ run: Run, isAgain: Bool) async throws -> String {
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
                "run \(last.id) is \(campaign) for run \(run.id) already, \(last.state.rawValue); "
                    + (last.state.isFinal
                        ? "--again sends another one" : "`fanfare status \(last.id)` shows its progress"))
        }
        return Self.occurrenceKey(of: run.id, number)
    }
}

extension CorrectRun {
    /// Returns the collapse id of the run's alerts, and the reached devices. Throws if no correction is possible.
    private func requireCorrectable(_ run: Run) async throws -> (collapseID: String, reached: ReachedDevices) {
        if let obstacle = Self.obstacle(to: run) { throw obstacle }
        if let pruned = try await ReportRun(store: store).prunedAt(run) {
            throw Failure(
                .refused,
                "the outcomes of run \(run.id) by device were pruned at \(pruned.iso8601), so its devices are unknown"
            )
        }
        let reached = try await store.reached(by: run.id)
        guard reached.all > 0 else {
            throw Failure(.refused, "run \(run.id) reached no device: there is nothing to correct")
        }
        guard let collapseID = RunHeaders(run).collapseID else {
            throw Failure(
                .refused,
                "run \(run.id) was sent without a collapse id (collapse: none): no push can replace the notification "
                    + "on the screens")
        }
        return (collapseID, reached)
    }

    /// Returns the obstacle to a correction that follows from the run alone; `nil` if there is none.
    private static func obstacle(to run: Run) -> Failure? {
        let campaign = run.definition.campaign
        if run.isTest { return Failure(.invalidData, "run \(run.id) is a test, to one device; send another test") }
        if campaign.pushType != .alert {
            return Failure(
                .invalidData,
                "run \(run.id) sent \(campaign.pushType.rawValue) pushes; only alerts stay on a screen, where they can be "
                    + "replaced")
        }
        // A paused run may resume and send the wrong text.
        if !run.state.isFinal || run.owner != nil || run.counts.leased > 0 {
            return Failure(
                .tryAgain,
                "run \(run.id) is \(run.state == .paused ? "only paused" : "still being sent"): "
                    + "`fanfare cancel \(run.id)` ends it, then correct the pushes sent")
        }
        return nil
    }

    /// Returns whether the correction needs approvals: it is large enough, and the campaign did not prepare its
    /// text. An unprepared text is another template, a template changed since the run was created, or new variable
    /// values. Prepared corrections and recalls need no approvals, because they are urgent.
    ///
    /// - Parameter files: the hash of the template, by path.
    private func needsSignatures(
        _ order: Order, _ run: Run, _ devices: Int, _ files: [String: String]
    ) async throws -> Bool {
        guard order.kind == .replace, approvals?.rule(forReach: devices) != nil else { return false }
        guard order.variables.allSatisfy({ run.definition.variables[$0.key] == $0.value }) else { return true }
        let filter = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        let made = try await store.events(filter, before: nil, limit: 1).events.first?.files ?? [:]
        return (order.template ?? run.definition.campaign.correction) != run.definition.campaign.correction
            || files.contains { made[$0.key] != $0.value }
    }

    private func requireReason(
        for order: Order, _ run: Run, _ devices: Int, by actor: Actor
    ) async throws {
        guard let approvals else { return }
        let person = try await approvals.people(in: store).person(actor.identity)
        let what =
            "a correction that the campaign did not prepare would go to \(devices.counted("device")) without signatures"
        guard approvals.mayOverride(person) else {
            throw Failure(
                .refused,
                what + ", and approvals.break_glass does not let \(person) send it; \(remedy(order, run))")
        }
        guard order.reason != nil else {
            throw Failure(.refused, what + "; give --reason TEXT, or `reason`, for the audit log")
        }
    }

    private func remedy(_ order: Order, _ run: Run) -> String {
        guard let prepared = run.definition.campaign.correction else {
            return "`fanfare recall \(run.id)` removes the alert from the screens, if the app supports it"
        }
        if (order.template ?? prepared) != prepared { return "send the prepared one, \(prepared), without --template" }
        return order.variables.isEmpty
            ? "\(prepared) has changed since the run was created: restore its earlier text"
            : "send \(prepared) without --var"
    }

    private func prepared(_ run: Run) throws -> String {
        if let name = run.definition.campaign.correction { return name }
        let advice = run.definition.correction.map {
            "run \(run.id) is the correction of run \($0.run); `fanfare correct \($0.run) --again` sends another"
        }
        throw Failure(
            .invalidData,
            advice ?? "campaign \(run.campaign) prepared no correction; name a template with --template, and next time "
                + "write correction: and its name in the campaign's file")
    }

    private func load(_ name: String, _ sees: (String) -> Bool) throws -> (Template, [String: String]) {
        let path = CampaignFolder(campaigns: "", templates: templates).templatePath(name)
        let names = YAMLFolder.names(in: templates)
        guard names.contains(name), sees(name) else {
            let suggestion = Suggestion.nearest(to: name, among: names.filter { $0 != name && sees($0) })
            throw Failure(
                .notFound,
                "no template \"\(name)\" in \(templates)" + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
        }
        let (source, diagnostics) = TemplateFile.load(path: path)
        guard let template = source?.template else { throw Failure(.invalidData, diagnostics) }
        return (template, try FileHash.hashes(of: [path]))
    }

    /// Returns the variables of the corrected run, overridden by the given ones.
    private func variables(
        _ given: [String: String], _ run: Run, _ template: Template
    ) throws -> [String: String] {
        let known = run.definition.variables
        let names = Set(known.keys).union(template.variables)
        for name in given.keys.sorted() where !names.contains(name) {
            let suggestion = Suggestion.nearest(to: name, among: names)
            throw Failure(
                .invalidData,
                "neither run \(run.id) nor template \(template.name) has a variable \"\(name)\""
                    + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
        }
        let values = known.merging(given) { $1 }
        let missing = template.unset(in: values)
        guard missing.isEmpty else {
            throw Failure(
                .invalidData,
                "template \(template.name) needs "
                    + missing.map { "--var \($0)=..." }.joined(separator: " "))
        }
        return values
    }

    private func requireFits(_ definition: RunDefinition) throws {
        let limit = definition.campaign.pushType.payloadMaxBytes
        let renderer = try VariantRenderers(definition)[nil]
        for (index, prototype) in renderer.prototypes.enumerated() {
            let bytes = prototype.worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes)
            guard bytes > limit, prototype.isCommon else { continue }
            throw Failure(
                .invalidData,
                "the payload in \(renderer.localeName(index)) has \(bytes) bytes, Apple accepts \(limit); shorten the "
                    + "texts of template \(definition.template.name)")
        }
    }

    private func warnings(
        _ run: Run, _ reached: ReachedDevices, _ template: Template, _ kind: Correction.Kind
    ) -> [String] {
        var warnings: [String] = []
        if reached.gone > 0 {
            warnings.append(
                "\(reached.gone.grouped) of the \(reached.all.grouped) devices that run \(run.id) reached are no "
                    + "longer in the store (removed or registered again), and cannot be reached")
        }
        guard kind == .replace else {
            return warnings + ["a recall does not wait for the silent budget, and uses no slot of it"]
        }
        let originals = [run.definition.template] + run.definition.variantTemplates.values
        let locales = Set(originals.flatMap(\.locales)).subtracting(template.locales)
        if !template.locales.isEmpty, !locales.isEmpty, let fallback = template.localeChoice(for: nil) {
            warnings.append(
                "template \(template.name) has no text in \(locales.map(\.description).sorted().joined(separator: ", ")); "
                    + "those devices get \(template.locales[fallback.index])")
        }
        return warnings
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
