import Campaigns
import Hummingbird
import Model

/// The operation that lists the audit log: who did what, and when.
struct AuditOperations: Sendable {
    let cases: UseCases

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/audit", id: "listEvents", subject: "Audit",
                about: "The audit log, latest first. A token for one app must name one run of that app.",
                permission: .read,
                parameters: [
                    .query("run", "Only entries of one run, by its number.", .integer),
                    .query("actor", "Only entries of one actor, by the full name."),
                    .query("kind", "Only entries of one kind.", allowed: EventKind.allCases.map(\.rawValue)),
                    .query("since", "Only events at or after a time, ISO 8601."), .limit, .cursor, .format,
                ],
                answers: [.init(.ok, "Events.", .json(ListPage<EventResult>.self), orTable: true)],
                problems: [.notFound, .unprocessableContent], handle: list)
        ]
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        let question = try AuditQuestion(
            run: request.text("run"), actor: request.text("actor"), kind: request.text("kind"),
            since: request.text("since"))
        let page = try await question.page(
            cases, request.caller, cursor: request.text("cursor"),
            limit: request.integer("limit", in: 1...500, otherwise: 50))
        return try request.list(page.events, next: page.next)
    }
}
