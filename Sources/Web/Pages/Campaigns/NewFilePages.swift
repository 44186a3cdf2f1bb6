import Campaigns
import Hummingbird
import Model

/// The pages for a new campaign or template. The new file begins with a valid text and is checked like any other. It
/// never overwrites an existing file.
struct NewFilePages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/new/{kind}", .edit, begin), .post("/new/{kind}/check", .edit, check),
            .post("/new/{kind}/save", .edit, save),
        ])
    }

    @Sendable private func begin(_ request: PageRequest) async throws -> Response {
        var page = try await page(request)
        guard let name = request.query("name") else { return try answer(request, page) }
        let kind = try kind(request)
        page.name = name
        do {
            try cases.files.requireNew(kind, name)
        } catch let refusal as FileRefusal {
            return try refused(request, page, refusal)
        }
        page.show(try await editor(kind, name, text: try beginning(kind, name, page), request))
        return try answer(request, page)
    }

    private func beginning(_ kind: ManageFiles.Kind, _ name: String, _ page: NewFilePage) throws -> String {
        guard kind == .campaign else { return cases.files.beginningOfTemplate(name) }
        return cases.files.beginningOfCampaign(
            name, topic: page.topics.chosen ?? "", template: page.templates.chosen ?? "")
    }

    /// Returns the page with the typed text and its problems. Returns only that part if the script requests it.
    @Sendable private func check(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let page = try await page(request, try .init(fields))
        guard fields["part"] == "check" else { return try answer(request, page) }
        return try request.part(.campaignParts, page)
    }

    @Sendable private func save(_ request: PageRequest) async throws -> Response {
        let draft = try CampaignPageBuilder.Draft(try await request.form())
        var page = try await page(request, draft)
        let caller = try request.caller
        do {
            try cases.files.requireNew(draft.kind, draft.file)
            try CampaignAccess(cases, caller).requireWriting(draft.kind, draft.file, text: draft.text)
            let written = try await cases.files.write(
                draft.kind, draft.file, text: draft.text, .new, mayStart: caller.role.may(.run), by: caller.actor,
                now: cases.now)
            if let held = written.held { return PageRequest.seeOther(ChangesPage.address(of: held)) }
        } catch FileRefusal.wrong(let diagnostics) {
            page.files[0].refuse(diagnostics)
            return try answer(request, page, status: .init(code: Problem(FileRefusal.wrong(diagnostics)).status))
        } catch FileRefusal.changedMeanwhile {
            // Another user created the file first.
            return try refused(request, page, .taken(file: page.files[0].path))
        } catch let refusal as FileRefusal {
            return try refused(request, page, refusal)
        } catch let problem as Problem {
            // The name belongs to another app. The typed text must not be lost.
            page.files[0].refusal = [problem.detail]
            return try answer(request, page, status: .init(code: problem.status))
        }
        switch draft.kind {
        case .campaign:
            return PageRequest.seeOther("\(CampaignPage.address(draft.file))?saved=compose")
        case .template: return PageRequest.seeOther("/new/campaign?template=\(draft.file.inAddress)&made=yes")
        }
    }

    private func refused(_ request: PageRequest, _ page: NewFilePage, _ refusal: FileRefusal) throws -> Response {
        var page = page
        page.problem = refusal.description.messageLines
        return try answer(request, page, status: .init(code: Problem(refusal).status))
    }

    private func answer(
        _ request: PageRequest, _ page: NewFilePage, status: HTTPResponse.Status = .ok
    ) throws -> Response {
        try request.page(.newFile, title: "New \(page.kind)", page, status: status)
    }

    private func kind(_ request: PageRequest) throws -> ManageFiles.Kind {
        try cases.files.requireEditing()
        let word = request.path("kind")
        return try ManageFiles.Kind(rawValue: word).orThrow(
            Problem.notFound("\"\(word)\" cannot be created; only campaigns and templates can"))
    }

    /// Returns the page with its choices, and with the draft if there is one.
    private func page(
        _ request: PageRequest, _ draft: CampaignPageBuilder.Draft? = nil
    ) async throws -> NewFilePage {
        let kind = try kind(request)
        let caller = try request.caller
        let access = CampaignAccess(cases, caller)
        let template = request.query("template")
        let templates = kind == .campaign ? try cases.files.templates().map(\.name).filter(access.seesTemplate) : []
        var page = NewFilePage(
            kind: kind, folder: cases.files.folder(kind),
            topics: .init(
                cases.configuration().apps.map(\.topic).filter(caller.sees), chosen: request.query("topic")),
            templates: .init(templates, chosen: template))
        if request.query("made") != nil { page.made = template.flatMap { templates.contains($0) ? $0 : nil } }
        if let draft {
            guard draft.kind == kind else {
                throw Problem.invalid([.init(detail: "this form creates a \(draft.kind.rawValue)")])
            }
            page.name = draft.file
            page.show(try await editor(kind, draft.file, text: draft.text, request))
            page.files[0].isUnsaved = true
        }
        return page
    }

    private func editor(
        _ kind: ManageFiles.Kind, _ name: String, text: String, _ request: PageRequest
    ) async throws -> FileEditor {
        let access = CampaignAccess(cases, try request.caller)
        // A new template reveals no other app's data, so its name is not checked here. Saving checks it.
        let found =
            switch kind {
            case .campaign: try await access.validated(kind, name, text: text)
            case .template: access.visible(try await cases.files.validate(kind, name, text: text, now: cases.now))
            }
        return FileEditor(
            kind, file: name, path: cases.files.pathOfNew(kind, name), of: "/new/\(kind.rawValue)", text: text,
            etag: nil, problems: found.problems, readOnly: nil)
    }
}

/// The page for a new file.
struct NewFilePage: Sendable {
    /// `campaign` or `template`.
    var kind: String
    var address: String
    var isCampaign: Bool
    var name = ""
    var folder: String
    var topics: [CampaignPage.Option]
    var templates: [CampaignPage.Option]
    var needsTemplate: Bool
    /// The template that was created just before.
    var made: String? {
        didSet { madeAddress = made.map(TemplatePage.address) }
    }
    var madeAddress: String?
    /// The reasons why no file is created, one per line.
    var problem: [String] = []
    /// The editor of the new file.
    var files: [FileEditor] = []
    var hasFile = false
    /// Always empty: the screens appear once the file exists.
    let phones: [PhoneScreen] = []
    let phonesReason: String? = nil

    init(
        kind: ManageFiles.Kind, folder: String, topics: [CampaignPage.Option], templates: [CampaignPage.Option]
    ) {
        self.kind = kind.rawValue
        address = "/new/\(kind.rawValue)"
        isCampaign = kind == .campaign
        self.folder = folder
        self.topics = topics
        self.templates = templates
        needsTemplate = isCampaign && templates.isEmpty
    }

    mutating func show(_ editor: FileEditor) {
        files = [editor]
        hasFile = true
    }
}

extension [CampaignPage.Option] {
    /// - Parameter chosen: the chosen name. If the names do not contain it, the first one is chosen.
    init(_ names: [String], chosen: String?) {
        let chosen = chosen.flatMap { names.contains($0) ? $0 : nil } ?? names.first
        self = names.map { .init(name: $0, isChosen: $0 == chosen) }
    }

    var chosen: String? { first(where: \.isChosen)?.name }
}
