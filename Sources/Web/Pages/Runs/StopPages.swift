import Campaigns
import Foundation
import Hummingbird
import Model

/// A stop in force, as every page shows it.
struct StopBanner: Sendable {
    /// The subject of the stop: `everything`, `the campaign new-podcast` or `run 17`.
    var what: String
    var by: String
    var at: PageHTML
    var reason: String?
    /// The number of requests started after the stop, in words. `nil` if no run was being sent.
    var started: String?
    /// The scope, for the form that lifts the stop.
    var scope: String
    var mayLift: Bool
    /// The visitor's name, as the suggested name of the person who lifts the stop.
    var name: String
    /// The run, if it was stopped alone. Such a run is resumed on its own page.
    var run: String?

    init(_ stop: StopInForce, _ caller: Caller) {
        let order = stop.order
        what = order.scope.summary
        by = PersonName.shown(order.by)
        at = PageHTML(time: order.at.iso8601)
        reason = order.reason
        let count = stop.runs.reduce(0) { $0 + $1.startedAfter }
        started = stop.runs.isEmpty ? nil : "\(count.counted("request was", "requests were")) started after the stop."
        scope = order.scope.text
        name = caller.name
        mayLift = caller.role.may(.lift)
        switch order.scope {
        case .all: mayLift = mayLift && caller.topic == nil
        case .campaign: break
        case .run(let id):
            mayLift = false
            run = "\(id)"
        case .occurrence: mayLift = false
        }
    }
}

/// The page from which everything can be stopped, also while nothing is being sent.
struct StopPage: Sendable {
    var isSending: Bool
}

/// The buttons that stop immediately, without a question, and the form that lifts a stop.
struct StopPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        [
            .get("/stops", .halt) { request in
                try request.page(.stops, title: "Stop", StopPage(isSending: try await Self.isSending(cases)))
            },
            .post("/stops", .halt) { request in
                _ = try await cases.stop(.all, reason: nil, by: request.caller, waits: false)
                return PageRequest.seeOther("/")
            },
            .post("/campaigns/{campaign}/stop", .halt) { request in
                let name = request.path("campaign")
                _ = try await cases.stop(.campaign(name), reason: nil, by: request.caller, waits: false)
                return PageRequest.seeOther(CampaignPage.address(name))
            }.readingTexts,
            .post("/runs/{run}/stop", .halt) { request in
                let run = try request.number("run", of: "run")
                _ = try await cases.stop(.run(run), reason: nil, by: request.caller, waits: false)
                return PageRequest.seeOther("/runs/\(run)")
            },
            .post("/stops/lift", .lift, lift).readingTexts,
        ]
    }

    /// Returns whether the button that stops everything belongs on the first page now.
    static func isSending(_ cases: UseCases) async throws -> Bool {
        try await cases.runs.isSending(orWithin: .seconds(3600))
    }

    /// Lifts a stop. The form asks for a name, because several people may share a token.
    @Sendable private func lift(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        guard let scope = fields["scope"].flatMap(StopOrder.Scope.init) else {
            throw Problem.invalid([.init(detail: "the form names no stop; reload the page")])
        }
        let name = fields["name", default: ""].trimmingCharacters(in: .whitespaces)
        guard !name.isEmpty else {
            throw Problem.invalid([.init(detail: "give your name: the audit log records who lifts the stop")])
        }
        let caller = try request.caller
        let reason = fields["reason", default: ""].trimmingCharacters(in: .whitespaces)
        let said = reason.isEmpty || name == caller.name ? reason : "\(reason) (\(name))"
        _ = try await cases.lift(scope, reason: said, by: caller)
        guard case .campaign(let campaign) = scope else { return PageRequest.seeOther("/") }
        return PageRequest.seeOther(CampaignPage.address(campaign))
    }
}
