import CampaignFiles
package import Model
import Rendering
import Store

/// The conditions of a correction.
extension CorrectRun {
    /// Returns the collapse id of the run's alerts, and the reached devices. Throws if no correction is possible.
    func requireCorrectable(_ run: Run) async throws -> (collapseID: String, reached: ReachedDevices) {
        if let obstacle = Self.obstacle(to: run) { throw obstacle }
        if let pruned = try await ReportRun.prunedAt(run, in: store) {
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
                    + "on devices")
        }
        return (collapseID, reached)
    }

    /// Returns the obstacle to a correction that follows from the run alone; `nil` if there is none.
    static func obstacle(to run: Run) -> Failure? {
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
                .runNotOver,
                "run \(run.id) is \(run.state == .paused ? "only paused" : "still being sent"): "
                    + "`fanfare cancel \(run.id)` ends it, then correct the pushes sent")
        }
        return nil
    }

    /// The approvals of a correction.
    enum Signatures {
        case notNeeded
        /// The correction is large and its text is not prepared, so it needs approvals.
        case missing(mayOverride: Bool, person: String)
    }

    /// Returns whether the correction needs approvals: it is large enough, and the campaign did not prepare its
    /// text. An unprepared text is another template, a template changed since the run was created, or new variable
    /// values. Prepared corrections and recalls need no approvals, because they are urgent.
    func signatures(for order: Order, _ run: Run, _ draft: Draft, by actor: Actor) async throws -> Signatures {
        guard order.kind == .replace, let approvals, approvals.rule(forReach: draft.devices) != nil,
            try await isUnprepared(order, run, draft)
        else { return .notNeeded }
        let person = try await approvals.people(in: store).person(actor.identity)
        return .missing(mayOverride: approvals.mayOverride(person), person: person)
    }

    private func isUnprepared(_ order: Order, _ run: Run, _ draft: Draft) async throws -> Bool {
        guard order.variables.allSatisfy({ run.definition.variables[$0.key] == $0.value }) else { return true }
        guard draft.campaign.template == run.definition.campaign.correction else { return true }
        let filter = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        let made = try await store.events(filter, before: nil, limit: 1).events.first?.files ?? [:]
        return draft.files.contains { made[$0.key] != $0.value }
    }

    /// Returns the recorded reason to send without the approvals. Throws if the person may not, or gave none.
    func overridingReason(
        _ order: Order, _ run: Run, _ draft: Draft, mayOverride: Bool, _ person: String
    ) throws -> String {
        let what =
            "a correction that the campaign did not prepare would go to \(draft.devices.counted("device")) without "
            + "signatures"
        guard mayOverride else {
            throw Failure(
                .refused,
                what + ", and approvals.break_glass does not let \(person) send it; add --for-approval to request the "
                    + "signatures, or \(remedy(order, run))")
        }
        guard let reason = try RecordedReason.checked(order.reason) else {
            throw Failure(
                .refused,
                what + "; add --for-approval to request them, or give --reason TEXT, or `reason`, for the audit log")
        }
        return reason
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

    /// Returns the template of a replacement: the given one, or the prepared one. Without either, it is the run's own
    /// template, if its text has changed or new values are given.
    func templateName(_ order: Order, _ run: Run) throws -> String {
        if let name = order.template ?? run.definition.campaign.correction { return name }
        let own = run.definition.campaign.template
        if run.definition.correction == nil, !order.variables.isEmpty || hasChanged(own, run) { return own }
        let advice = run.definition.correction.map {
            "run \(run.id) is the correction of run \($0.run); `fanfare correct \($0.run) --again` sends another"
        }
        throw Failure(
            .invalidData,
            advice ?? "run \(run.id) was started without `correction` in its campaign, and its template is unchanged; "
                + "correct the text of template \(own), give the corrected values with --var, or name another template "
                + "with --template")
    }

    /// Returns whether the template's file says something else than the run sent.
    private func hasChanged(_ name: String, _ run: Run) -> Bool {
        // A template that cannot be read is no correction; the caller says what to do instead.
        guard let (template, _) = try? load(name, { _ in true }) else { return false }
        return template != run.definition.template
    }

    func load(_ name: String, _ sees: (String) -> Bool) throws -> (Template, [String: String]) {
        let path = CampaignFolder(campaigns: "", templates: templates).templatePath(name)
        let names = YAMLFolder.names(in: templates)
        guard names.contains(name), sees(name) else {
            let suggestion = Suggestion.nearest(to: name, among: names.filter { $0 != name && sees($0) })
            throw Failure(
                .notFound,
                "no template \"\(name)\" in \(templates)" + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
        }
        let (source, diagnostics) = TemplateFile.load(path: path)
        guard let source else { throw Failure(.invalidData, diagnostics) }
        return (source.template, source.hashes)
    }

    /// Returns the variables of the corrected run, overridden by the given ones.
    func variables(
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

    func requireFits(_ definition: RunDefinition) throws {
        let limit = definition.campaign.pushType.payloadMaxBytes
        let renderer = try VariantRenderers(definition)[nil]
        for (index, prototype) in renderer.prototypes.enumerated() {
            let bytes = prototype.worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes)
            guard bytes > limit, prototype.isCommon else { continue }
            throw Failure(
                .invalidData,
                "the payload in \(renderer.localeName(index)) has \(bytes) bytes; Apple accepts \(limit); shorten the "
                    + "texts of template \(definition.template.name)")
        }
    }

    /// Throws if the correction would send what the run has sent.
    func requireOtherTexts(_ definition: RunDefinition, than run: Run) throws {
        let sent = run.definition
        guard sent.variantTemplates.isEmpty, sent.template == definition.template,
            definition.template.variables.allSatisfy({ definition.variables[$0] == sent.variables[$0] })
        else { return }
        throw Failure(
            .invalidData,
            "the correction has the same texts as run \(run.id): change a value, or choose another template")
    }

    func warnings(
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
        if !run.definition.campaign.variants.isEmpty {
            warnings.append(
                "run \(run.id) had variants; every device gets the texts of template \(template.name)")
        }
        let originals = [run.definition.template] + run.definition.variantTemplates.values
        if let changed = Self.templateChange(since: run, to: template, among: originals) { warnings.append(changed) }
        let locales = Set(originals.flatMap(\.locales)).subtracting(template.locales)
        if !template.locales.isEmpty, !locales.isEmpty, let fallback = template.localeChoice(for: nil) {
            warnings.append(
                "template \(template.name) has no text in \(locales.map(\.description).sorted().joined(separator: ", ")); "
                    + "those devices get \(template.locales[fallback.index])")
        }
        return warnings
    }

    /// Says what has changed in a template since the run was created. Returns `nil` if nothing has, or if the run was
    /// sent with other templates.
    private static func templateChange(since run: Run, to template: Template, among sent: [Template]) -> String? {
        guard let then = sent.first(where: { $0.name == template.name }), then != template,
            let old = try? TemplateOutline(then), let new = try? TemplateOutline(template)
        else { return nil }
        let changes = TemplateOutline.changes(from: old, to: new, variant: nil)
        guard !changes.isEmpty else { return nil }
        return
            "template \(template.name) has changed since run \(run.id) (\(changes.summary)); the correction sends its "
            + "present text"
    }

    /// Says that a campaign's file has changed since the run. Returns `nil` if it has not.
    ///
    /// - Parameter campaign: the campaign as its file is now.
    package static func campaignChange(since run: Run, _ campaign: Campaign) -> String? {
        guard let keys = try? CampaignOutline.changedKeys(run.definition.campaign, campaign), !keys.isEmpty else {
            return nil
        }
        return
            "campaign \(run.campaign) has changed since run \(run.id) (\(keys.joined(separator: ", "))); the correction "
            + "keeps the settings of the run"
    }
}
