import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The page of one start of a campaign's schedule, where a person gives it its values.
struct NextStartPages: Sendable {
    private static let startsShown = 6

    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/campaigns/{campaign}/next", .read, show), .post("/campaigns/{campaign}/next", .run, give),
        ])
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        try await answer(request, request.queryFields)
    }

    /// Stores the values of the start, or removes them.
    @Sendable private func give(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let builder = try builder(request)
        let occurrence = fields["occurrence"] ?? ""
        do {
            let source = try cases.files.source(builder.name)
            let actor = builder.caller.actor
            let isRemoval = fields["do"] == "remove"
            if isRemoval {
                _ = try await cases.values.remove(from: occurrence, of: source, by: actor, now: cases.now)
            } else {
                let typed = CampaignPage.Input(fields).variables
                _ = try await cases.values.give(typed, to: occurrence, of: source, by: actor, now: cases.now)
            }
            let address = NextStartPage.address(builder.name, occurrence)
            return PageRequest.seeOther("\(address)&done=\(isRemoval ? "removed" : "saved")")
        } catch {
            let problem = try Problem.explained(error, for: builder.caller)
            return try await answer(
                request, fields, problem: problem.detail.messageLines,
                status: .init(code: problem.status))
        }
    }

    /// Returns the page with the typed values. Stores nothing.
    func answer(
        _ request: PageRequest, _ fields: [String: String], problem: [String] = [],
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let builder = try builder(request)
        let source = try cases.files.source(builder.name)
        let name = fields["occurrence"].flatMap { $0.isEmpty ? nil : $0 }
        let start = try await cases.values.start(source, named: name, now: cases.now)
        let nexts = try await cases.values.starts(source, atMost: Self.startsShown, now: cases.now)
        let typed = source.campaign.declared(CampaignPage.Input(fields).variables)
        var page = NextStartPage(
            builder.name, start, nexts, typed: typed, for: builder.caller, now: cases.now)
        page.problem = problem
        if problem.isEmpty { page.done = NextStartPage.done(fields["done"]) }
        do {
            var definition = start.definition
            definition.variables.merge(typed) { $1 }
            page.phones = try PhoneScreen.all(of: definition.filledForShow().definition)
        } catch {
            page.phonesReason = builder.summary(of: error)
        }
        return try request.page(
            .nextStart, title: "\(page.heading), \(builder.name)", page, status: status)
    }

    private func builder(_ request: PageRequest) throws -> CampaignPageBuilder {
        try CampaignPageBuilder(cases, try request.caller, request.path("campaign"))
    }
}

/// One start of a campaign's schedule with the values that it sends.
struct NextStartPage: Sendable {
    struct Next: Sendable {
        var address: String
        var label: String
        var state: String
        var mark: String
        var isCurrent: Bool
    }

    var campaign: String
    var campaignAddress: String
    var address: String
    var heading: String
    var occurrence: String
    var state: String
    var mark: String
    var clock: String
    /// The person who gave the values, and when; `nil` if none were given.
    var given: String?
    var variables: [CampaignPage.Variable]
    var hasVariables: Bool
    var nexts: [Next]
    var run: PlanPage.Link?
    /// The reason why the visitor cannot give values.
    var reason: String?
    var mayType: Bool
    var mayGive: Bool
    var mayPlan: Bool
    var mayRemove: Bool
    var phones: [PhoneScreen] = []
    var phonesReason: String?
    var done: String?
    /// The reasons why the request was refused, one per line.
    var problem: [String] = []
}

extension NextStartPage {
    init(
        _ name: String, _ start: GiveValues.Start, _ nexts: [GiveValues.Start], typed: [String: String],
        for caller: Caller, now: Timestamp
    ) {
        let key = start.occurrence.key
        let isOpen = start.run == nil && now < start.occurrence.startsAt
        (campaign, campaignAddress, occurrence) = (name, CampaignPage.address(name), key)
        address = campaignAddress + "/next"
        heading = "Start \(start.occurrence.wall.spoken)"
        (state, mark) = Self.state(start)
        clock =
            switch start.timetable.zone {
            case .recipient: "each device’s own clock"
            case .fixed(let zone): "clock of \(ViewerZone.name(of: zone))"
            }
        given = start.given.map { "values by \($0.givenBy), \($0.givenAt.iso8601.shownTimeAndZone)" }
        let defaults = start.definition.campaign.variables
        variables = CampaignPage.Variable.all(defaults) { typed[$0] ?? start.definition.variables[$0] }
        hasVariables = !defaults.isEmpty
        run = start.run.map { PlanPage.Link(address: "/runs/\($0.id)", label: "run \($0.id), \($0.state.rawValue)") }
        mayPlan = caller.role.may(.plan) && isOpen && hasVariables
        mayGive = caller.role.may(.run) && isOpen && hasVariables
        mayRemove = mayGive && start.given != nil
        mayType = mayPlan || mayGive
        if start.run == nil, !isOpen { reason = "Its start time has passed: its values can no longer be changed." }
        if isOpen, hasVariables, !caller.role.may(.run) {
            reason =
                "\(caller.name) is \(caller.role.rawValue): only senders can give a start its values."
                + (mayPlan ? " Plan this start with your values, and send the link to the plan to a sender." : "")
        }
        self.nexts = nexts.map { next in
            let (state, mark) = Self.state(next)
            return Next(
                address: Self.address(name, next.occurrence.key), label: next.occurrence.wall.spoken, state: state,
                mark: mark == "failed" ? "bad" : "soft", isCurrent: next.occurrence.key == key)
        }
    }

    private static func state(_ start: GiveValues.Start) -> (state: String, mark: String) {
        guard start.missing.isEmpty else { return (MissingValues.summary(start.missing), "failed") }
        return (start.given == nil ? "the file’s values" : "its own values", "finished")
    }

    static func address(_ campaign: String, _ occurrence: String) -> String {
        "\(CampaignPage.address(campaign))/next?occurrence=\(occurrence.inAddress)"
    }

    static func done(_ what: String?) -> String? {
        switch what {
        case "saved": "Saved. The start sends these values."
        case "removed": "The values were removed."
        default: nil
        }
    }
}
