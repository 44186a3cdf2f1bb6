import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The pages of templates: the list, and each template to read, check, change and delete.
struct TemplatePages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/templates", .read, list), .get("/templates/{template}", .read, show),
            .post("/templates/{template}/check", .plan, check), .post("/templates/{template}/save", .edit, save),
            .post("/templates/{template}/delete", .edit, delete),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let access = CampaignAccess(cases, caller)
        let rows = try cases.files.templates().filter { access.seesTemplate($0.name) }
            .map { TemplateList.Row(access.visible($0)) }
        return try request.page(
            .templates, title: "Templates",
            TemplateList(
                rows: rows, isEmpty: rows.isEmpty, folder: cases.configuration().templates,
                mayMake: cases.configuration().http.editing && caller.role.may(.edit)))
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        var page = try await page(request)
        page.files[0].isSaved = request.query("saved") != nil
        return try answer(request, page)
    }

    /// Returns the page with the typed text and its problems. Returns only the changing parts if the script requests
    /// them.
    @Sendable private func check(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let page = try await page(request, draft: try draft(fields, request))
        guard fields["part"] == "check" else { return try answer(request, page) }
        return try request.part(.campaignParts, page)
    }

    @Sendable private func save(_ request: PageRequest) async throws -> Response {
        let draft = try draft(try await request.form(), request)
        let editing = FileEditing(cases: cases, caller: try request.caller)
        do {
            let written = try await editing.save(draft)
            // The page says that the text waits, not that it was saved.
            let address = TemplatePage.address(draft.file)
            return PageRequest.seeOther(written.held == nil ? "\(address)?saved=yes" : address)
        } catch let refusal as FileRefusal {
            var page = try await page(request, draft: draft)
            try await editing.show(refusal, of: draft, in: &page.files[0])
            return try answer(request, page, status: .init(code: Problem(refusal).status))
        }
    }

    @Sendable private func delete(_ request: PageRequest) async throws -> Response {
        let etag = try await request.form()["etag", default: ""]
        let caller = try request.caller
        do {
            _ = try await CampaignAccess(cases, caller)
                .deleteTemplate(request.path("template"), .unchanged(etag: etag))
            return PageRequest.seeOther("/templates")
        } catch let refusal as FileRefusal {
            var page = try await page(request)
            page.problem = refusal.description.messageLines
            if case .changedMeanwhile = refusal {
                page.problem = ["Not deleted: the text was changed after you opened it. Read it, and delete it again."]
            }
            return try answer(request, page, status: .init(code: Problem(refusal).status))
        }
    }

    private func draft(_ fields: [String: String], _ request: PageRequest) throws -> CampaignPageBuilder.Draft {
        let draft = try CampaignPageBuilder.Draft(fields)
        guard draft.kind == .template, draft.file == request.path("template") else {
            throw Problem.invalid([.init(detail: "the form names another file; reload the page")])
        }
        return draft
    }

    private func page(
        _ request: PageRequest, draft: CampaignPageBuilder.Draft? = nil
    ) async throws -> TemplatePage {
        let (name, caller) = (request.path("template"), try request.caller)
        let access = CampaignAccess(cases, caller)
        let editing = FileEditing(cases: cases, caller: caller)
        try access.requireTemplate(name)
        guard cases.files.has(.template, name) else { throw Problem.notFound("no template \"\(name)\"") }
        var detail = try cases.files.template(name)
        detail.template = access.visible(detail.template)
        var page = TemplatePage(detail, readOnly: try editing.reason(.template, name))
        var shown = draft
        for change in try await cases.changes(for: caller) where change.kind == "template" && change.name == name {
            page.changes.append(.init(address: ChangesPage.address(of: change.id), summary: change.summaryOnPage))
            if shown == nil { shown = try await editing.ownText(of: change) }
        }
        if let shown {
            let found = try await access.validated(.template, name, text: shown.text).problems
            page.files[0] = FileEditor(
                .template, file: name, path: detail.template.path, of: page.address, text: shown.text,
                etag: shown.etag, problems: found, readOnly: page.files[0].reason)
            page.files[0].isUnsaved = draft.map { $0.text != detail.text } ?? false
        }
        page.putPhones(cases.files, draft: draft?.text, saved: detail.text, topic: topic(of: page, caller))
        let isUsed = !cases.files.topics(ofTemplate: name).isEmpty
        if !isUsed, page.files[0].isEditable { page.deleteAddress = "\(page.address)/delete" }
        return page
    }

    /// Returns the topic of the app that the phones show: of a campaign that uses the template, or else of any app that
    /// the caller sees.
    private func topic(of page: TemplatePage, _ caller: Caller) -> String {
        let used = cases.files.topics(ofTemplate: page.name).first(where: caller.sees)
        return used ?? cases.configuration().apps.map(\.topic).first(where: caller.sees) ?? "app"
    }

    private func answer(
        _ request: PageRequest, _ page: TemplatePage, status: HTTPResponse.Status = .ok
    ) throws -> Response {
        try request.page(.template, title: page.name, page, status: status)
    }
}

/// The list of templates.
struct TemplateList: Sendable {
    struct Row: Sendable {
        var name: String
        var address: String
        var state: String
        var mark: String
        var languages: String
        var users: [TemplatePage.User]
        var isUsed: Bool
    }

    var rows: [Row]
    var isEmpty: Bool
    var folder: String
    /// Whether the visitor may create files.
    var mayMake: Bool
}

extension TemplateList.Row {
    init(_ template: TemplateResult) {
        name = template.name
        address = TemplatePage.address(template.name)
        (state, mark) = TemplatePage.state(of: template)
        languages = TemplatePage.languages(of: template)
        users = template.campaigns.map(TemplatePage.User.init)
        isUsed = !users.isEmpty
    }
}

/// A template's page for its author: the text with its problems, and the screens of phones.
struct TemplatePage: Sendable {
    /// A campaign that uses the template.
    struct User: Sendable {
        var name: String
        var address: String

        init(_ campaign: String) {
            name = campaign
            address = CampaignPage.address(campaign)
        }
    }

    var name: String
    var path: String
    var address: String
    var state: String
    var mark: String
    var languages: String
    var users: [User]
    var isUsed: Bool
    /// The reasons why the template was not deleted, one per line.
    var problem: [String] = []
    /// The editor of the file.
    var files: [FileEditor]
    /// The texts of the template that wait for release.
    var changes: [CampaignPage.Waiting] = []
    var phones: [PhoneScreen] = []
    var phonesReason: String?
    /// The address of the button that deletes the template. `nil` if the template is in use, or if the visitor may not.
    var deleteAddress: String?
    /// The tag of the text that the button deletes.
    var etag: String

    init(_ detail: TemplateDetailResult, readOnly: String?) {
        let template = detail.template
        name = template.name
        path = template.path
        address = Self.address(template.name)
        (state, mark) = Self.state(of: template)
        languages = Self.languages(of: template)
        users = template.campaigns.map(User.init)
        isUsed = !users.isEmpty
        etag = detail.etag ?? ""
        files = [
            FileEditor(
                .template, file: template.name, path: template.path, of: Self.address(template.name),
                text: detail.text, etag: detail.etag, problems: detail.problems, readOnly: readOnly)
        ]
    }

    /// Shows the draft's notifications. A draft with errors has none, so the page shows those of the saved text
    /// instead.
    mutating func putPhones(_ files: ManageFiles, draft: String?, saved: String?, topic: String) {
        func screens(_ text: String?) -> [PhoneScreen] {
            let found = text.flatMap { try? files.notifications(ofTemplate: name, text: $0) } ?? []
            return found.map { PhoneScreen($0, topic: topic) }
        }
        phones = screens(draft ?? saved)
        guard phones.isEmpty else { return }
        phones = draft == nil ? [] : screens(saved)
        phonesReason =
            phones.isEmpty
            ? "There is no notification to show while the file has errors."
            : "Shown as saved, because the text in the editor has errors."
    }

    /// Returns the address of a template's page.
    static func address(_ name: String) -> String { "/templates/" + name.inAddress }

    static func state(of template: TemplateResult) -> (summary: String, mark: String) {
        let isClean = template.errors + template.warnings == 0
        return (
            isClean ? "ok" : FileEditor.summary(errors: template.errors, warnings: template.warnings),
            template.errors > 0 ? "failed" : template.warnings > 0 ? "paused" : "finished"
        )
    }

    static func languages(of template: TemplateResult) -> String {
        template.locales.isEmpty ? "one text for every language" : template.locales.joined(separator: ", ")
    }
}
