import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The page that corrects what a run has sent: new values, their preview on phones, and the devices that get them.
struct CorrectionPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/runs/{run}/correction", .run, show), .post("/runs/{run}/correct", .run, correct),
            .post("/runs/{run}/correction/ask", .run, ask),
        ])
    }

    /// Shows the correction with the values in the address. At first these are the values that were sent.
    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let run = try await run(request)
        let fields = request.queryFields
        let page = try CorrectionPage(
            run, try await preview(run, fields, request), fields, isFirst: fields.isEmpty, for: try request.caller)
        return try answer(request, run, page)
    }

    /// Starts the correction, if it is the previewed one. Otherwise shows its new preview with the reason.
    @Sendable private func correct(_ request: PageRequest) async throws -> Response {
        try await previewed(request, "Not sent", "send") { run, preview, prepared, page, fields in
            try await send(run, preview, prepared, &page, fields, request)
        }
    }

    /// Asks for approval of the correction, if it is the previewed one.
    @Sendable private func ask(_ request: PageRequest) async throws -> Response {
        try await previewed(request, "Not asked", "ask") { run, _, prepared, page, fields in
            do {
                _ = try await cases.correcting.ask(
                    prepared, note: fields["note"], by: try request.caller.actor, now: cases.now)
                return PageRequest.seeOther(CorrectionPage.address(of: prepared.definition))
            } catch {
                return try refused(error, run, page, request)
            }
        }
    }

    /// Does something with the correction of a form. If it is not the previewed one, shows its new preview instead.
    private func previewed(
        _ request: PageRequest, _ refusal: String, _ verb: String,
        _ body: (Run, CorrectionPreview, CorrectRun.Prepared, inout CorrectionPage, [String: String]) async throws ->
            Response
    ) async throws -> Response {
        let run = try await run(request)
        let fields = try await request.form()
        let preview = try await preview(run, fields, request)
        var page = try CorrectionPage(run, preview, fields, isFirst: false, for: try request.caller)
        guard let prepared = preview.prepared else {
            return try answer(request, run, page, status: .unprocessableContent)
        }
        guard try prepared.digest == fields["preview"] else {
            page.problem = [
                "\(refusal): the values or the texts are not those of the preview. Check the new preview, and \(verb) "
                    + "again."
            ]
            return try answer(request, run, page, status: .conflict)
        }
        return try await body(run, preview, prepared, &page, fields)
    }

    private func send(
        _ run: Run, _ preview: CorrectionPreview, _ prepared: CorrectRun.Prepared, _ page: inout CorrectionPage,
        _ fields: [String: String], _ request: PageRequest
    ) async throws -> Response {
        if preview.mayOverride, page.reason.isEmpty {
            page.problem = ["Not sent: give the reason for sending without approvals, or ask for approval."]
            return try answer(request, run, page, status: .unprocessableContent)
        }
        if let earlier = preview.earlier, fields["again"] == nil {
            page.problem = ["Not sent: run \(earlier.id) is already a correction. To send another one, tick the box."]
            return try answer(request, run, page, status: .conflict)
        }
        do {
            let started = try await cases.correcting.start(prepared, by: try request.caller.actor, now: cases.now)
            return PageRequest.seeOther("/runs/\(started.id)")
        } catch {
            return try refused(error, run, page, request)
        }
    }

    private func refused(
        _ error: any Error, _ run: Run, _ page: CorrectionPage, _ request: PageRequest
    ) throws -> Response {
        var page = page
        let problem = try Problem.refusal(error, for: request.caller)
        page.problem = problem.detail.messageLines
        return try answer(request, run, page, status: .init(code: problem.status))
    }

    private func preview(
        _ run: Run, _ fields: [String: String], _ request: PageRequest
    ) async throws -> CorrectionPreview {
        let caller = try request.caller
        let order = CorrectRun.Order(
            .replace, template: fields["template"], variables: CampaignPage.Input(fields).variables,
            reason: fields["reason"])
        return try await cases.correcting.preview(
            run, order, by: caller.actor, now: cases.now, sees: CampaignAccess(cases, caller).seesTemplate)
    }

    private func run(_ request: PageRequest) async throws -> Run {
        try await cases.run(try request.number("run", of: "run"), for: request.caller)
    }

    private func answer(
        _ request: PageRequest, _ run: Run, _ page: CorrectionPage, status: HTTPResponse.Status = .ok
    ) throws -> Response {
        var page = page
        // A file that is gone or broken says nothing about the correction, which does not read it.
        if let campaign = try? cases.files.source(ofCampaignNamed: run.campaign).campaign {
            page.warnings += [CorrectRun.campaignChange(since: run, campaign)].compactMap(\.self)
        }
        return try request.page(.correction, title: "Correct \(page.campaign) \(page.occurrence)", page, status: status)
    }
}

/// The page of a correction that is not sent yet.
struct CorrectionPage: Sendable {
    var run: Int64
    var campaign: String
    var occurrence: String
    var address: String
    /// The address to which the correction is sent.
    var sendAddress: String
    /// The reasons why the correction cannot be sent, one per line.
    var problem: [String]
    /// The next step, while the correction is the text that was sent.
    var note: String?
    var warnings: [String]
    /// The earlier correction.
    var earlier: String?
    /// The run that has removed the notification from the screens since.
    var removedBy: String?
    var templates: [CampaignPage.Option]
    var hasTemplates: Bool
    var variables: [CampaignPage.Variable]
    var sentTo: String
    var isProduction: Bool
    /// The digest of the previewed correction; `nil` if it can neither be sent nor be asked for.
    var preview: String?
    /// The state of the approval; `nil` if the correction needs none.
    var step: Step?
    /// The address that asks for approval; `nil` if there is nothing to ask for.
    var askAddress: String?
    var maySend = false
    var needsReason: Bool
    var reason: String
    var isAgain: Bool
    var phones: [PhoneScreen]
    var phonesReason: String?
    /// What phones show until the correction arrives. `nil` if the notification was removed.
    var before: ApprovalPage.Before?

    /// The state of the approval.
    struct Step: Sendable {
        var state: String
        var mark: String
        /// What to do next, in a sentence.
        var next: String
        var link: PlanPage.Link?
    }

    /// - Parameter isFirst: whether the visitor has not typed any value yet.
    init(
        _ run: Run, _ preview: CorrectionPreview, _ fields: [String: String], isFirst: Bool, for caller: Caller
    ) throws {
        self.run = run.id
        campaign = run.campaign
        occurrence = run.occurrence
        address = "/runs/\(run.id)/correction"
        sendAddress = "/runs/\(run.id)/correct"
        templates = preview.templates.map { .init(name: $0, isChosen: $0 == preview.template) }
        hasTemplates = templates.count > 1
        variables = preview.variables.sorted { $0.key < $1.key }.map { name, value in
            let shown = fields["v.\(name)"].map { _ in CampaignPage.Input(fields).variables[name] ?? value } ?? value
            return .init(
                name: name, value: shown, placeholder: "needs a value",
                rows: min(max(shown.plainLines.count, 1), CampaignPage.Variable.rowsMax))
        }
        sentTo = preview.sentTo
        isProduction = sentTo.contains(PushEnvironment.production.warningName)
        self.preview = try preview.prepared.map { try $0.digest }
        needsReason = preview.mayOverride
        if let step = preview.prepared?.step {
            self.step = Step(step)
            switch step {
            case .ready, .approved: maySend = true
            case .needsApproval, .rejected: askAddress = "\(address)/ask"
            default: break
            }
        }
        maySend = maySend || needsReason
        reason = fields["reason", default: ""].trimmingCharacters(in: .whitespaces)
        earlier = preview.earlier.map { "\($0.id)" }
        removedBy = preview.removedBy.map { "\($0.id)" }
        isAgain = fields["again"] != nil
        warnings = preview.prepared?.warnings ?? []
        let shown = preview.earlier ?? run
        before =
            removedBy != nil ? nil : .init(run: shown.id, phones: (try? PhoneScreen.all(of: shown.definition)) ?? [])
        problem = []
        do {
            phones = try PhoneScreen.all(of: preview.definition)
        } catch {
            phones = []
            phonesReason = Problem(error, for: caller).detail
        }
        guard let obstacle = preview.obstacle else { return }
        if isFirst { note = "Change a value, and preview the correction." }
        switch obstacle {
        case .missingValues(let names): note = "Give a value to \(names.joined(separator: ", ")), and preview again."
        case .other(let error) where !isFirst:
            problem = Problem(error, for: caller).detail.messageLines
        case .other: break
        }
    }
}

extension CorrectionPage {
    /// Returns the address of a correction's page with the correction's values.
    static func address(of correction: RunDefinition) -> String {
        let template = [(name: "template", value: correction.template.name)]
        let values = correction.variables.filter { correction.template.variables.contains($0.key) }
            .sorted { $0.key < $1.key }.map { (name: "v.\($0.key)", value: $0.value) }
        return "/runs/\(correction.correction?.run ?? 0)/correction?\(PageRequest.query(template + values))"
    }
}

extension CorrectionPage.Step {
    /// Returns `nil` for a correction that needs no approval.
    fileprivate init?(_ step: KeepPlans.Step) {
        if case .ready = step { return nil }
        (state, mark, link) = (step.summary, PlanPage.mark(step), PlanPage.link(step))
        next = PlanPage.next(step, "Change a value") ?? ""
    }
}
