import Campaigns
import Foundation
import Hummingbird
import Model

/// The page for a new campaign with a gallery to start from, and the copying of a campaign.
struct NewCampaignPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/new", .edit, show), .post("/new", .edit, create),
            .post("/campaigns/{campaign}/copy", .edit, copy),
        ])
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        try cases.files.requireEditing()
        return try request.page(.newCampaign, title: "New campaign", try page(request, request.queryFields))
    }

    @Sendable private func create(_ request: PageRequest) async throws -> Response {
        try cases.files.requireEditing()
        let caller = try request.caller
        let fields = try await request.form()
        let name = FileName.name(for: fields["name", default: ""])
        let kind = CampaignGallery(rawValue: fields["kind", default: ""]) ?? .blank
        do {
            let topic = fields["topic", default: ""]
            guard cases.configuration().apps.contains(where: { $0.topic == topic }) else {
                throw Problem.invalid([.init(detail: "Choose one of your apps.")])
            }
            return try await create(name, kind.files(name: name, topic: topic), request)
        } catch {
            let problem = try Problem.refusal(error, for: caller)
            var page = try page(request, fields)
            page.problem = problem.detail
            return try request.page(
                .newCampaign, title: "New campaign", page, status: .init(code: problem.status))
        }
    }

    @Sendable private func copy(_ request: PageRequest) async throws -> Response {
        try cases.files.requireEditing()
        let (caller, source) = (try request.caller, request.path("campaign"))
        try CampaignAccess(cases, caller).require(source)
        let name = FileName.name(for: try await request.form()["name", default: ""])
        do {
            return try await create(name, try cases.files.copy(of: source, as: name), request)
        } catch {
            let problem = try Problem.refusal(error, for: caller)
            var page = try await ComposerBuilder(pages: CampaignPageBuilder(cases, caller, source)).page(.init())
            page.problem = problem.detail.messageLines
            return try request.page(.campaign, title: page.name, page, status: .init(code: problem.status))
        }
    }

    private func create(
        _ name: String, _ files: (campaign: String, templates: [(name: String, text: String)]), _ request: PageRequest
    ) async throws -> Response {
        let caller = try request.caller
        let access = CampaignAccess(cases, caller)
        // The templates are new, so they belong to no app yet.
        try cases.files.requireNew(.campaign, name)
        for template in files.templates { try cases.files.requireNew(.template, template.name) }
        try access.requireCreating(name, text: files.campaign, templates: Set(files.templates.map(\.name)))
        let held = try await cases.files.create(
            name, files, mayStart: caller.role.may(.run), by: caller.actor, now: cases.now)
        return PageRequest.seeOther(held.map(ChangesPage.address(of:)) ?? CampaignPage.address(name))
    }

    private func page(_ request: PageRequest, _ fields: [String: String]) throws -> NewCampaignPage {
        let topics = cases.configuration().apps.map(\.topic).filter(try request.caller.sees)
        let chosen = CampaignGallery(rawValue: fields["kind", default: ""]) ?? .episode
        return NewCampaignPage(
            name: fields["name", default: ""], topics: .init(topics, chosen: fields["topic"]),
            hasSeveral: topics.count > 1,
            kinds: CampaignGallery.allCases.map {
                .init(kind: $0.rawValue, title: $0.title, summary: $0.summary, isChosen: $0 == chosen)
            })
    }
}

/// The gallery of campaigns to start from.
struct NewCampaignPage: Sendable {
    struct Kind: Sendable {
        var kind: String
        var title: String
        var summary: String
        var isChosen: Bool
    }

    var name: String
    var topics: [CampaignPage.Option]
    var hasSeveral: Bool
    var kinds: [Kind]
    var problem: String?
}
