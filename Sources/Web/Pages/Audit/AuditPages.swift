import Campaigns
import Hummingbird
import Model

/// The audit log: who did what, and when. The address contains the filters, so that a view can be shared as a link.
struct AuditPages: Sendable {
    struct Page: Sendable {
        struct Event: Sendable {
            var at: PageHTML
            var kind: String
            /// The address that lists all events of this kind.
            var kindAddress: String
            var actor: String
            var actorAddress: String
            /// `nil` if the event belongs to no run.
            var runAddress: String?
            var runName: String?
            var detail: PageHTML
            var origin: String
        }

        struct Kind: Sendable {
            var word: String
            var label: String
            var isChosen: Bool
        }

        var run: String
        var actor: String
        var since: String
        var kinds: [Kind]
        var problem: String?
        var events: [Event]
        var isEmpty: Bool
        /// The address of older events. `nil` if there are none.
        var nextAddress: String?
        var tableAddress: String
    }

    private static let shownMax = 100

    let cases: UseCases

    var routes: [PageRoute] { [.get("/audit", .read, show)] }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        var problem: Problem?
        var events = EventPageResult(events: [], next: nil)
        do {
            let question = try AuditQuestion(
                run: request.query("run"), actor: request.query("actor"), kind: request.query("kind"),
                since: request.query("since"))
            events = try await question.page(
                cases, request.caller, cursor: request.query("cursor"), limit: Self.shownMax)
        } catch {
            let refusal = Problem(error)
            guard refusal.status < 500 else { throw error }
            problem = refusal
        }
        if problem == nil, request.query("format") == "csv" { return .table(try ListTable.text(events.events)) }
        return try request.page(
            .audit, title: "Audit", page(request, events, problem?.detail), status: .init(code: problem?.status ?? 200))
    }

    private func page(_ request: PageRequest, _ events: EventPageResult, _ problem: String?) -> Page {
        let filters = ["run", "actor", "kind", "since"].compactMap { name in request.query(name).map { (name, $0) } }
        return Page(
            run: request.query("run") ?? "", actor: request.query("actor") ?? "", since: request.query("since") ?? "",
            kinds: EventKind.allCases.map {
                Page.Kind(
                    word: $0.rawValue, label: $0.rawValue.withSpaces,
                    isChosen: $0.rawValue == request.query("kind"))
            },
            problem: problem, events: events.events.map(Page.Event.init), isEmpty: events.events.isEmpty,
            nextAddress: events.next.map { Self.address(filters + [("cursor", $0)]) },
            tableAddress: Self.address(
                filters + (request.query("cursor").map { [("cursor", $0)] } ?? []) + [("format", "csv")]))
    }

    static func address(_ filters: [(String, String)]) -> String {
        "/audit?" + filters.map { "\($0)=\($1.inAddress)" }.joined(separator: "&")
    }
}

extension AuditPages.Page.Event {
    fileprivate init(_ event: EventResult) {
        at = PageHTML(time: event.at)
        kind = event.kind.withSpaces
        kindAddress = AuditPages.address([("kind", event.kind)])
        actor = PersonName.shown(event.actorShown)
        actorAddress = AuditPages.address([("actor", event.actor)])
        runAddress = event.run.map { "/runs/\($0)" }
        runName = event.run.map { "\(event.campaign ?? "run") \($0)" }
        detail = PageHTML(message: event.detail)
        origin = event.origin
    }
}

/// A query of the audit log, from the page or the API.
struct AuditQuestion: Sendable {
    private let run: Int64?
    private let actor: String?
    private let kind: String?
    private let since: Timestamp?

    init(run: String?, actor: String?, kind: String?, since: String?) throws {
        self.run = try run.map { text in
            guard let number = Int64(text) else {
                throw Problem.invalid(parameter: "run", "\"run\" must be a run's number")
            }
            return number
        }
        self.actor = actor
        if let kind, EventKind(rawValue: kind) == nil {
            let kinds = EventKind.allCases.map(\.rawValue)
            throw Problem.invalid(
                parameter: "kind",
                "unknown kind \"\(kind)\"; "
                    + (Suggestion.nearest(to: kind, among: kinds).map { "did you mean \"\($0)\"?" }
                        ?? "there are \(kinds.joined(separator: ", "))"))
        }
        self.kind = kind
        self.since = try since.map { text in
            try WrittenMoment.parse(text).orThrow(
                Problem.invalid(parameter: "since", "\"since\" must be a time such as 2026-12-01T09:00:00Z"))
        }
    }

    /// Returns a page of events. A caller confined to one app must name one of its runs, and gets only that run's
    /// events.
    func page(_ cases: UseCases, _ caller: Caller, cursor: String?, limit: Int) async throws -> EventPageResult {
        if let topic = caller.topic {
            guard let run else {
                throw Problem.forbidden(
                    "\(caller.name) is valid only for \(topic): give the number of a run of that app")
            }
            _ = try await cases.run(run, for: caller)
        }
        return try await cases.audit.page(
            run: run, actor: actor, kind: kind, since: since, cursor: cursor, limit: limit)
    }
}
