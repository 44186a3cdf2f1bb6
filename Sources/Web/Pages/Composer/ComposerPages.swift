import CampaignFiles
import Campaigns
import Hummingbird
import Model

/// The composer's form: its preview while a person types, the count of its audience, and its saving.
struct ComposerPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .post("/campaigns/{campaign}/compose", .edit, compose),
            .post("/campaigns/{campaign}/compose/count", .plan, count),
        ])
    }

    @Sendable private func compose(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let fields = try await request.form()
        let input = CampaignPage.Input(fields)
        if fields["part"] == "check" {
            return try request.part(.composerParts, try await builder.page(input, fields))
        }
        guard fields["do"] == "save" else {
            return try answer(request, try await builder.page(input, fields))
        }
        return try await save(request, builder, fields, input)
    }

    private func save(
        _ request: PageRequest, _ builder: ComposerBuilder, _ fields: [String: String], _ input: CampaignPage.Input
    ) async throws -> Response {
        let saved = try await builder.pages.page(input, hasPhones: false)
        let edited: ComposerBuilder.Edited
        do {
            edited = try builder.edited(saved, fields)
        } catch let fault as YAMLText.Fault {
            var page = try await builder.page(input)
            page.problem = [ComposerBuilder.summary(of: fault)]
            return try answer(request, page, status: .unprocessableContent)
        }
        guard ComposerBuilder.problems(of: edited.fields, fields).isEmpty else {
            var page = try await builder.page(input, fields)
            page.problem = ["Not saved: correct the errors first."]
            return try answer(request, page, status: .unprocessableContent)
        }
        // Each text is written only over the one that the person opened.
        let drafts = edited.drafts.map { draft in
            var draft = draft
            draft.etag = fields["etag.\(draft.kind.rawValue)", default: draft.etag]
            return draft
        }
        let current = Dictionary(saved.files.map { ($0.kind, $0.etag) }) { one, _ in one }
        let isHeld: Bool
        do {
            for draft in drafts where draft.etag != current[draft.kind.rawValue] {
                throw FileRefusal.changedMeanwhile(file: draft.file, etag: current[draft.kind.rawValue, default: ""])
            }
            isHeld = try await builder.pages.editing.save(drafts).contains { $0.held != nil }
        } catch let refusal as FileRefusal {
            return try await refused(refusal, request, builder, fields, input)
        }
        // The page says that the text waits, not that it was saved.
        return PageRequest.seeOther(
            CampaignPage.address(builder.pages.name, input, and: isHeld ? "held=compose" : "saved=compose"))
    }

    /// Returns the form again. If another user changed a file, the form has the changes of both.
    private func refused(
        _ refusal: FileRefusal, _ request: PageRequest, _ builder: ComposerBuilder, _ fields: [String: String],
        _ input: CampaignPage.Input
    ) async throws -> Response {
        var page: CampaignPage
        if case .changedMeanwhile = refusal {
            page = try await builder.merged(input, fields)
        } else {
            page = try await builder.page(input, fields)
            page.problem =
                if case .wrong = refusal {
                    ["Not saved: correct the errors first."]
                } else { refusal.description.messageLines }
            if case .wrong(let diagnostics) = refusal { page.composer?.list(diagnostics) }
        }
        return try answer(request, page, status: .init(code: Problem(refusal).status))
    }

    /// Returns the count of the form's audience as a fragment. A script requests it while a person chooses.
    @Sendable private func count(_ request: PageRequest) async throws -> Response {
        let builder = try builder(request)
        let form = try await request.form()
        let fields = try ComposerBuilder.posted(form, over: ComposerFields())
        var view: CountView
        if let planned = try? await builder.planned(form) {
            view = CountView(planned)
        } else {
            // A form with errors has no plan.
            let topic = try cases.files.topic(ofCampaign: builder.pages.name) ?? ""
            view = try await SegmentPages(cases: cases).counted(
                fields.audience, ["topic": topic, "push_type": PushType.alert.rawValue], request)
        }
        if let devices = view.devices {
            if let most = Int(fields["guards.max_reach"]), devices > most {
                view.problem = "More than the limit of \(most.grouped): the send would be refused."
            } else if let least = Int(fields["guards.min_reach"]), devices < least {
                view.problem = "Fewer than the limit of \(least.grouped): the send would be refused."
            }
        }
        return request.fragment(try PageTemplate.count.render(view))
    }

    private func builder(_ request: PageRequest) throws -> ComposerBuilder {
        ComposerBuilder(
            pages: try CampaignPageBuilder(cases, try request.caller, request.path("campaign")))
    }

    private func answer(
        _ request: PageRequest, _ page: CampaignPage, status: HTTPResponse.Status = .ok
    ) throws -> Response {
        try request.page(.campaign, title: page.name, page, status: status)
    }
}
