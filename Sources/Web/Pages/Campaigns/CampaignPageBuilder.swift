import Campaigns
import Foundation
import Model

/// Builds the page of a campaign, from its saved files or with an unsaved text.
struct CampaignPageBuilder: Sendable {
    /// A text that is not saved.
    struct Draft: Sendable {
        var kind: ManageFiles.Kind
        var file: String
        var text: String
        /// The tag of the text that was opened. Empty if the file is to be new.
        var etag: String
        /// The tag of another user's text that this draft replaces. `nil` if the button for replacing it was not
        /// pressed.
        var over: String?

        /// The condition under which the draft may be written.
        var condition: ManageFiles.Condition {
            let etag = over ?? etag
            return etag.isEmpty ? .new : .unchanged(etag: etag)
        }
    }

    let cases: UseCases
    let caller: Caller
    let name: String

    /// Throws "not found" if the caller may not see the campaign.
    init(_ cases: UseCases, _ caller: Caller, _ name: String) throws {
        try CampaignAccess(cases, caller).require(name)
        self.cases = cases
        self.caller = caller
        self.name = name
    }

    /// - Parameter hasPhones: whether to render the notifications.
    func page(
        _ input: CampaignPage.Input = .init(), draft: Draft? = nil, hasPhones: Bool = true
    ) async throws -> CampaignPage {
        let detail = try await cases.files.campaign(name, now: cases.now)
        let campaign = detail.campaign
        let mayStart = cases.files.mayStart(campaign)
        var page = CampaignPage(
            name: name, address: CampaignPage.address(name), facts: Self.facts(campaign),
            state: campaign.errors + campaign.warnings == 0
                ? "files ok" : FileEditor.summary(errors: campaign.errors, warnings: campaign.warnings),
            mark: CampaignList.Row(campaign).mark, starts: CampaignPage.summary(startedBy: campaign.startedBy),
            nexts: campaign.nextOccurrences.map { next(detail, $0) },
            lastRun: campaign.lastRun.map(CampaignPage.LastRun.init), problem: [], files: try editors(detail),
            changes: [],
            phones: [], variables: CampaignPage.Variable.all(detail.variables) { input.variables[$0] },
            device: input.device,
            variants: detail.variants.map { .init(name: $0, isChosen: $0 == input.variant) },
            hasVariants: !detail.variants.isEmpty, hasSchedule: campaign.startedBy == "schedule", isNow: input.isNow,
            mayPlan: mayStart && caller.role.may(.plan), mayTest: mayStart && caller.role.may(.testSend),
            plansAddress: "/plans?campaign=\(name.inAddress)")
        page.testDevices = caller.topic == nil ? cases.testDeviceNames : []
        page.formAddress = CampaignPage.address(name, input)
        page.filesAddress = CampaignPage.address(name, input, and: "view=files")
        page.mayEdit = !page.files.isEmpty && page.files.allSatisfy(\.isEditable)
        let isUnderWay =
            campaign.lastRun.map { !["finished", "failed", "cancelled", "missed"].contains($0.state) } ?? false
        // A campaign at rest has nothing to stop.
        if caller.role.may(.halt), isUnderWay || campaign.startedBy != "hand" {
            page.stopAddress = "\(page.address)/stop"
        }
        try await putChanges(into: &page)
        if let draft {
            let known = page.files.map(\.text)
            try await put(draft, into: &page)
            for index in page.files.indices { page.files[index].isUnsaved = page.files[index].text != known[index] }
        }
        if hasPhones {
            await putPhones(input, drafts: try texts(draft), of: "the text in the editor", into: &page)
        }
        let carried =
            page.variables.map { FileEditor.Carried(name: "v.\($0.name)", value: $0.value) }
            + [.init(name: "device", value: input.device), .init(name: "variant", value: input.variant)]
        for index in page.files.indices { page.files[index].carried = carried }
        return page
    }

    /// Shows the notifications of unsaved texts. Texts with errors have none, so the page shows those of the saved
    /// texts instead.
    ///
    /// - Parameters:
    ///   - drafts: texts that are not saved, by path.
    ///   - source: what the drafts come from, in words.
    func putPhones(
        _ input: CampaignPage.Input, drafts: [String: String], of source: String, into page: inout CampaignPage
    ) async {
        let templates = page.files.filter { $0.kind == ManageFiles.Kind.template.rawValue }.map(\.path)
        do {
            page.phones = try await phones(input, drafts: drafts)
        } catch {
            // The words are right as long as the template is, whatever the campaign file says about audience and time.
            let typed = drafts.filter { templates.contains($0.key) }
            if typed.count < drafts.count, let screens = try? await phones(input, drafts: typed) {
                page.phones = screens
                page.phonesReason = "Default values are shown as saved, because \(source) has errors."
                return
            }
            page.phones = typed.isEmpty ? [] : (try? await phones(input, drafts: [:])) ?? []
            page.phonesReason =
                if !page.phones.isEmpty {
                    "Shown as saved, because \(source) has errors."
                } else if Failure(error)?.kind == .notFound {
                    summary(of: error)
                } else {
                    "There is no notification to show while a file has errors."
                }
        }
    }

    var editing: FileEditing { FileEditing(cases: cases, caller: caller) }

    /// Returns the reason for a refusal, in the command line's words.
    func summary(of error: any Error) -> String { Problem(error, for: caller).detail }

    /// Returns a start, with the page for its values if the campaign has variables.
    private func next(_ detail: CampaignDetailResult, _ entry: ScheduleResult.Entry) -> CampaignPage.Next {
        var next = CampaignPage.Next(entry, file: name)
        if detail.variables.isEmpty { next.address = nil }
        return next
    }

    private static func facts(_ campaign: CampaignResult) -> [PlanView.Fact] {
        [
            ("App", campaign.topic ?? ""),
            (
                "Push",
                [campaign.pushType, campaign.priority.map { "priority \($0)" }].compactMap(\.self)
                    .joined(separator: ", ")
            ),
            ("Template", campaign.template ?? ""), ("Starts", CampaignPage.summary(startedBy: campaign.startedBy)),
        ].filter { !$0.1.isEmpty }.map { PlanView.Fact(name: $0.0, value: $0.1) }
    }

    // MARK: Texts

    private func editors(_ detail: CampaignDetailResult) throws -> [FileEditor] {
        let campaign = FileEditor(
            .campaign, file: name, path: detail.campaign.path, of: CampaignPage.address(name), text: detail.text,
            etag: detail.etag,
            problems: detail.problems.filter { problem in
                !detail.templates.contains { $0.template.path == problem.path }
            }, readOnly: try editing.reason(.campaign, name))
        let access = CampaignAccess(cases, caller)
        let templates = try detail.templates.map { template in
            var editor = FileEditor(
                .template, file: template.template.name, path: template.template.path, of: CampaignPage.address(name),
                text: template.text, etag: template.etag, problems: template.problems,
                readOnly: try editing.reason(.template, template.template.name))
            editor.shared = SharedTemplate(access.visible(template.template), besides: name)
            return editor
        }
        return [campaign] + templates
    }

    /// Adds the texts that wait for release to the page. Authors see their own waiting text in place of the file's.
    private func putChanges(into page: inout CampaignPage) async throws {
        for change in try await cases.changes(for: caller) {
            guard page.files.contains(where: { $0.kind == change.kind && $0.file == change.name }) else { continue }
            page.changes.append(.init(address: ChangesPage.address(of: change.id), summary: change.summaryOnPage))
            if let draft = try await editing.ownText(of: change) { try await put(draft, into: &page) }
        }
    }

    /// Puts an unsaved text and its problems into the file's editor.
    private func put(_ draft: Draft, into page: inout CampaignPage) async throws {
        guard let index = page.files.firstIndex(where: { $0.kind == draft.kind.rawValue && $0.file == draft.file })
        else { throw Problem.notFound("no \(draft.kind.rawValue) \"\(draft.file)\" belongs to this campaign") }
        let path = page.files[index].path
        let access = CampaignAccess(cases, caller)
        let found = try await access.validated(draft.kind, draft.file, text: draft.text).problems
        let shared = page.files[index].shared
        page.files[index] = FileEditor(
            draft.kind, file: draft.file, path: path, of: CampaignPage.address(name), text: draft.text,
            etag: draft.etag, problems: found, readOnly: page.files[index].reason)
        page.files[index].shared = shared
    }

    // MARK: Phones

    private func texts(_ draft: Draft?) throws -> [String: String] {
        guard let draft else { return [:] }
        return [try cases.files.path(draft.kind, draft.file): draft.text]
    }

    /// - Parameter drafts: texts that are not saved, by path.
    private func phones(_ input: CampaignPage.Input, drafts: [String: String]) async throws -> [PhoneScreen] {
        let source = try cases.files.source(name, drafts: drafts)
        let known = input.variables.filter { source.campaign.variables[$0.key] != nil }
        let definition = try source.definition(with: known, plannedAt: cases.now)
        let topic = source.campaign.topic
        let screens = try PreviewNotifications.all(definition).notifications.map { PhoneScreen($0, topic: topic) }
        guard !input.device.isEmpty else { return screens }
        return [try await deviceScreen(definition, input)] + screens
    }

    /// Returns the notification with the device's own data.
    private func deviceScreen(_ definition: RunDefinition, _ input: CampaignPage.Input) async throws -> PhoneScreen {
        let result = try await cases.rendering(
            definition.filledForShow().definition, device: input.device,
            variant: input.variant.isEmpty ? nil : input.variant, sees: caller.sees
        ).result
        let name = result.device?.installationId ?? input.device
        return PhoneScreen(
            PreviewResult.Notification(result), topic: definition.campaign.topic, device: name,
            remarks: result.remarks)
    }

    // MARK: The way to a run

    /// Plans the campaign with the input, and keeps the plan. At the campaign's next time its stored values or those of
    /// the file are sent, so the input does not count then, unless it is for that very start.
    func plan(_ input: CampaignPage.Input) async throws -> SavedPlan {
        var definition = try definition(input)
        let planning = cases.planning(definition.campaign.topic)
        let hasNext = definition.campaign.schedule.flatMap(Timetable.init)?.next(after: cases.now) != nil
        let occurrence = input.occurrence.isEmpty ? nil : input.occurrence
        let isNext = !input.isNow && hasNext && occurrence == nil
        if isNext { definition = try cases.files.source(name).definition(plannedAt: cases.now) }
        try await CampaignAccess(cases, caller).requireSegments(of: definition.campaign)
        let planned = try await planning.plan(
            definition, typed: isNext ? [] : nil, occurrence: occurrence, isNow: input.isNow, by: caller.actor,
            now: cases.now)
        return try await cases.plans.keep(planned, file: name, by: caller.actor, now: cases.now)
    }

    func definition(_ input: CampaignPage.Input) throws -> RunDefinition {
        try cases.files.source(name).definition(with: input.variables, plannedAt: cases.now)
    }

    /// Returns the outcome of a test of this campaign, or `nil` if there is no such test or the caller may not see it.
    func test(_ number: Int64) async throws -> TestState? {
        guard try await cases.runs.run(number)?.campaign == name else { return nil }
        return try await cases.test(number, for: caller)
    }
}
