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
            .post("/campaigns/{campaign}/preview", .plan, preview),
            .post("/campaigns/{campaign}/plan", .plan, plan),
            .post("/campaigns/{campaign}/test-send", .testSend, test),
            .post("/campaigns/{campaign}/start", .run, start),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let rows = try await cases.files.campaigns(now: cases.now).filter { caller.sees($0.topic ?? "") }
            .map(CampaignList.Row.init)
        return try request.page(
            .campaigns, title: "Campaigns",
            CampaignList(
                rows: rows, isEmpty: rows.isEmpty, folder: cases.configuration().campaigns,
                mayMake: cases.configuration().http.editing && caller.role.may(.edit)))
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        var page = try await builder.page()
        if let test = request.query("test").flatMap({ Int64($0) }) { page.test = try await builder.test(test) }
        if let saved = request.query("saved") {
            for index in page.files.indices where page.files[index].id == saved { page.files[index].isSaved = true }
        }
        return try answer(request, page)
    }

    /// Returns the page with the typed text and its problems. Returns only the changing parts if the script requests
    /// them.
    @Sendable private func check(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        let page = try await builder.page(CampaignPage.Input(fields), draft: try .init(fields))
        guard fields["part"] == "check" else { return try answer(request, page) }
        return try request.part(.campaignParts, page)
    }

    @Sendable private func save(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        guard cases.configuration().http.editing else { throw FileRefusal.editingIsOff }
        let draft = try CampaignPageBuilder.Draft(try await request.form())
        try CampaignAccess(cases, builder.caller).requireWriting(draft.kind, draft.file, text: draft.text)
        do {
            let written = try await cases.files.write(
                draft.kind, draft.file, text: draft.text, draft.condition, mayStart: builder.caller.role.may(.run),
                by: builder.caller.actor, now: cases.now)
            // The page says that the text waits, not that it was saved.
            if written.held != nil {
                let editor = FileEditor.id(draft.kind, draft.file).inAddress
                return PageRequest.seeOther("\(CampaignPage.address(builder.name))?held=\(editor)")
            }
        } catch let refusal as FileRefusal {
            return try await refused(refusal, draft, builder, request)
        }
        let editor = FileEditor.id(draft.kind, draft.file)
        return PageRequest.seeOther(
            "\(CampaignPage.address(builder.name))?saved=\(editor.inAddress)#\(editor.inAddress)")
    }

    /// Returns the page again with the typed text. If another user changed the file, the page shows both texts. The
    /// form keeps the tag of the text that was opened, so only the explicit button replaces the other text.
    private func refused(
        _ refusal: FileRefusal, _ draft: CampaignPageBuilder.Draft, _ builder: CampaignPageBuilder,
        _ request: PageRequest
    ) async throws -> Response {
        var page = try await builder.page(draft: draft)
        guard let index = page.files.firstIndex(where: { $0.kind == draft.kind.rawValue && $0.file == draft.file })
        else { throw refusal }
        if case .changedMeanwhile(_, let etag) = refusal {
            let theirs = try await builder.theirs(insteadOf: draft, etag: etag)
            let waiting = theirs.author.map { author in
                "\(author)'s text waits for release and was not overwritten: compare the two texts, and save yours "
                    + "again to replace theirs"
            }
            page.files[index].conflict = .init(
                waiting ?? refusal.description, yours: draft.text, theirs: theirs.text, etag: theirs.etag)
        } else if case .wrong = refusal {
            page.files[index].refusal = ["Not saved: correct the errors first."]
        } else {
            page.files[index].refusal = refusal.description.split(separator: "\n").map(String.init)
        }
        return try answer(request, page, status: .init(code: Problem(refusal).status))
    }

    @Sendable private func preview(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let input = CampaignPage.Input(try await request.form())
        return try answer(request, try await builder.page(input))
    }

    @Sendable private func plan(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let input = CampaignPage.Input(try await request.form())
        return try await doing(request, builder, input) { page in try await builder.plan(input, into: &page) }
    }

    /// Creates a test and leaves it to the daemon. The page shows its progress.
    @Sendable private func test(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let input = CampaignPage.Input(try await request.form())
        do {
            guard !input.device.isEmpty else {
                throw Failure(
                    .invalidData, "name a device: an installation id, a user id or a token's last 8 characters")
            }
            let run = try await cases.tested(
                builder.definition(input), device: input.device, variant: input.variant.isEmpty ? nil : input.variant,
                by: builder.caller)
            return PageRequest.seeOther("\(CampaignPage.address(builder.name))?test=\(run.id)#test")
        } catch {
            return try await refused(error, request, builder, input)
        }
    }

    @Sendable private func start(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        var input = CampaignPage.Input(fields)
        input.isNow = true
        do {
            let given = fields["plan", default: ""]
            guard let plan = PlanToken(given) else {
                if PlanToken.isOutdated(given) { throw PlanToken.fault(given) }
                throw Failure(.invalidData, "plan the run first: a start needs the hash of its plan")
            }
            let guards = GuardName.allCases.filter { fields["guard.\($0.rawValue)"] != nil }
            let order = StartCampaign.Order(
                occurrence: fields["occurrence", default: ""], variables: input.variables, plan: plan,
                overriding: Set(guards))
            let (run, isNew) = try await started(order, plan, builder)
            let isOther = try plan.differs(from: run)
            // The same name from the page means that the same form was sent twice.
            let isSameForm = order.occurrence.hasPrefix(CampaignPageBuilder.occurrencePrefix) && !isOther
            guard isNew || isSameForm else {
                return try await sentAlready(run, isOther: isOther, request, builder, input)
            }
            return PageRequest.seeOther("/runs/\(run.id)")
        } catch {
            return try await refused(error, request, builder, input)
        }
    }

    /// Starts the run. If a run has this name already, returns that run, even if its plan differs.
    private func started(
        _ order: StartCampaign.Order, _ plan: PlanToken, _ builder: CampaignPageBuilder
    ) async throws -> (run: Run, isNew: Bool) {
        do {
            let started = try await cases.started(builder.name, order, by: builder.caller)
            return (started.run, started.isNew)
        } catch let drift as PlanDrift {
            guard
                let run = try await cases.start.sent(builder.name, in: cases.files, occurrence: order.occurrence),
                builder.caller.sees(run.definition.campaign.topic)
            else { throw drift }
            return (run, false)
        }
    }

    /// Returns the plan again, so that the run can be started under another name.
    private func sentAlready(
        _ run: Run, isOther: Bool, _ request: PageRequest, _ builder: CampaignPageBuilder,
        _ input: CampaignPage.Input
    ) async throws -> Response {
        var page = try await builder.page(input)
        page.problem = [
            "\(run.occurrence) was sent already as run \(run.id)\(isOther ? ", with other texts" : ""); nothing was "
                + "sent. Give the run another name."
        ]
        try? await builder.plan(input, into: &page)
        return try answer(request, page, status: .conflict)
    }

    /// Performs an action that may be refused, then returns the page.
    private func doing(
        _ request: PageRequest, _ builder: CampaignPageBuilder, _ input: CampaignPage.Input,
        _ body: (inout CampaignPage) async throws -> Void
    ) async throws -> Response {
        var page = try await builder.page(input)
        do {
            try await body(&page)
        } catch {
            return try await refused(error, request, builder, input)
        }
        return try answer(request, page)
    }

    /// Returns the page again, with the input and the reason for the refusal.
    private func refused(
        _ error: any Error, _ request: PageRequest, _ builder: CampaignPageBuilder, _ input: CampaignPage.Input
    ) async throws -> Response {
        let problem = Problem(error, for: builder.caller)
        guard problem.status < 500 || Failure(error) != nil else { throw error }
        var page = try await builder.page(input)
        page.problem = problem.detail.split(separator: "\n").map(String.init)
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
