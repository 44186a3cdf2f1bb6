import Campaigns
import Foundation
import Hummingbird
import Model

/// The pages of campaigns: the list, and each campaign to read, check, change, test, plan and start.
struct CampaignPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/campaigns", .read, list),
            .get("/campaigns/{campaign}", .read, show),
            .post("/campaigns/{campaign}/check", .plan, check),
            .post("/campaigns/{campaign}/save", .edit, save),
            .post("/campaigns/{campaign}/plan", .plan, plan),
            .post("/campaigns/{campaign}/test-send", .testSend, test),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let rows = try await cases.files.campaigns(now: cases.now).filter { caller.sees($0.topic ?? "") }
            .map(CampaignList.Row.init)
        let isOn = cases.configuration().http.editing
        return try request.page(
            .campaigns, title: "Campaigns",
            CampaignList(
                rows: rows, isEmpty: rows.isEmpty, folder: cases.configuration().campaigns,
                mayMake: isOn && caller.role.may(.edit), isOff: !isOn && caller.role.may(.edit)))
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let input = CampaignPage.Input(request.queryFields)
        var page =
            request.query("view") == "files"
            ? try await builder.page(input) : try await ComposerBuilder(pages: builder).page(input)
        page.composer?.isSaved = request.query("saved") == "compose"
        page.responses = try await responses(to: builder.name, request)
        if let test = request.query("test").flatMap({ Int64($0) }) {
            page.test = try await builder.test(test)?.again(at: page.address, request.queryFields)
        }
        if let saved = request.query("saved") {
            for index in page.files.indices where page.files[index].id == saved { page.files[index].isSaved = true }
        }
        return try answer(request, page)
    }

    /// Returns the chart of what people did with the last finished runs. `nil` if no app reported anything.
    private func responses(to name: String, _ request: PageRequest) async throws -> PageHTML? {
        let filter = RunFilter(campaign: cases.runName(ofCampaign: name), states: [.finished])
        let search = RunSearch(filter, topic: try request.caller.topic)
        let runs = try await cases.found(search, at: .newest, limit: Chart.responsesMax).runs
        let responses = try await cases.runningReports.responses(of: runs)
        return responses.isEmpty ? nil : PageHTML(chart: .responses(responses.reversed()))
    }

    /// Returns the page with the typed text and its problems. Returns only the changing parts if the script requests
    /// them.
    @Sendable private func check(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        let input = CampaignPage.Input(fields)
        // The form of one start, which a sign-in interrupted, or whose preview is wanted.
        if !input.occurrence.isEmpty { return try await NextStartPages(cases: cases).answer(request, fields) }
        guard fields["kind"] != nil else {
            // A form without a text, which a sign-in interrupted: the composer's, or that of the values.
            let isComposed = fields.keys.contains { $0.hasPrefix("c.") }
            return try answer(
                request, try await ComposerBuilder(pages: builder).page(input, isComposed ? fields : nil))
        }
        let page = try await builder.page(input, draft: try CampaignPageBuilder.Draft(fields))
        guard fields["part"] == "check" else { return try answer(request, page) }
        return try request.part(.campaignParts, page)
    }

    @Sendable private func save(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        let draft = try CampaignPageBuilder.Draft(fields)
        let input = CampaignPage.Input(fields)
        do {
            let written = try await builder.editing.save(draft)
            // The page says that the text waits, not that it was saved.
            if written.held != nil {
                let held = "view=files&held=\(FileEditor.id(draft.kind, draft.file).inAddress)"
                return PageRequest.seeOther(CampaignPage.address(builder.name, input, and: held))
            }
        } catch let refusal as FileRefusal {
            return try await refused(refusal, draft, input, builder, request)
        }
        let editor = FileEditor.id(draft.kind, draft.file)
        return PageRequest.seeOther(
            CampaignPage.address(builder.name, input, and: "view=files&saved=\(editor.inAddress)")
                + "#\(editor.inAddress)")
    }

    /// Returns the page again with the typed text. If another user changed the file, the page shows both texts. The
    /// form keeps the tag of the text that was opened, so only the explicit button replaces the other text.
    private func refused(
        _ refusal: FileRefusal, _ draft: CampaignPageBuilder.Draft, _ input: CampaignPage.Input,
        _ builder: CampaignPageBuilder, _ request: PageRequest
    ) async throws -> Response {
        var page = try await builder.page(input, draft: draft)
        guard let index = page.files.firstIndex(where: { $0.kind == draft.kind.rawValue && $0.file == draft.file })
        else { throw refusal }
        try await builder.editing.show(refusal, of: draft, in: &page.files[index])
        return try answer(request, page, status: .init(code: Problem(refusal).status))
    }

    /// Plans the campaign, and leads to the plan.
    @Sendable private func plan(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        let input = CampaignPage.Input(fields)
        do {
            let address = try await builder.plan(input).address
            return PageRequest.seeOther(input.device.isEmpty ? address : "\(address)?device=\(input.device.inAddress)")
        } catch  where !input.occurrence.isEmpty {
            let detail = Problem(error, for: builder.caller).detail
            return try await NextStartPages(cases: cases).answer(request, fields, problem: [detail])
        } catch {
            return try await refused(error, request, builder, input)
        }
    }

    /// Creates a test and leaves it to the daemon. The page shows its progress.
    @Sendable private func test(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let input = CampaignPage.Input(try await request.form())
        do {
            let run = try await cases.tested(
                builder.definition(input), device: input.device, variant: input.variant.isEmpty ? nil : input.variant,
                by: builder.caller)
            return PageRequest.seeOther(
                CampaignPage.address(builder.name, input, and: "test=\(run.id)") + "#test")
        } catch {
            return try await refused(error, request, builder, input)
        }
    }

    /// Returns the page again, with the input and the reason for the refusal.
    private func refused(
        _ error: any Error, _ request: PageRequest, _ builder: CampaignPageBuilder, _ input: CampaignPage.Input
    ) async throws -> Response {
        let problem = try Problem.explained(error, for: builder.caller)
        var page = try await ComposerBuilder(pages: builder).page(input)
        page.problem = problem.detail.messageLines
        return try answer(request, page, status: .init(code: problem.status))
    }

    private func builder(_ request: PageRequest) throws -> CampaignPageBuilder {
        try CampaignPageBuilder(cases, try request.caller, request.path("campaign"))
    }

    private func answer(
        _ request: PageRequest, _ page: CampaignPage, status: HTTPResponse.Status = .ok
    ) throws -> Response {
        try request.page(.campaign, title: page.name, page, status: status)
    }
}

extension CampaignPageBuilder.Draft {
    /// Reads a draft from an editor's form.
    init(_ fields: [String: String]) throws {
        guard let kind = fields["kind"].flatMap(ManageFiles.Kind.init), let file = fields["file"] else {
            throw Problem.invalid([.init(detail: "the form names no file; reload the page")])
        }
        // Browsers end lines with CRLF; files use LF.
        let text = fields["text", default: ""].replacing("\r\n", with: "\n")
        self.init(kind: kind, file: file, text: text, etag: fields["etag", default: ""], over: fields["over"])
    }
}

extension PageRequest {
    /// Returns a part of a page alone, for the script.
    func part(_ template: PageTemplate, _ model: some Sendable) throws -> Response {
        Response(
            status: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: try template.render(model))))
    }
}
