import Campaigns
import Hummingbird
import Model

/// The changes to files that wait for release, each with the file's current text.
struct ChangePages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/changes", .read) { try await show($0, problem: nil) },
            .post("/changes/{change}/release", .run) { request in
                try await act(request) { id, _, caller in _ = try await cases.release(id, by: caller) }
            },
            .post("/changes/{change}/reject", .run) { request in
                try await act(request) { id, reason, caller in
                    _ = try await cases.reject(id, reason: reason, by: caller)
                }
            },
        ])
    }

    private func act(
        _ request: PageRequest, _ body: (Int64, String?, Caller) async throws -> Void
    ) async throws -> Response {
        let id = try request.number("change", of: "change")
        let reason = try await request.form()["reason"]
        do {
            try await body(id, reason.flatMap { $0.isEmpty ? nil : $0 }, try request.caller)
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            return try await show(request, problem: problem)
        }
        return PageRequest.seeOther("/changes")
    }

    private func show(_ request: PageRequest, problem: Problem?) async throws -> Response {
        let caller = try request.caller
        var changes: [ChangesPage.Change] = []
        for change in try await cases.changes(for: caller).prefix(ChangesPage.shown) {
            // Another request may have released or rejected the change in the meantime.
            guard let detail = try? await cases.change(change.id, for: caller) else { continue }
            changes.append(ChangesPage.Change(detail, mayRelease: caller.role.may(.run)))
        }
        return try request.page(
            .changes, title: "Waiting changes",
            ChangesPage(
                changes: changes, isEmpty: changes.isEmpty,
                problem: problem?.detail.messageLines ?? []),
            status: .init(code: problem?.status ?? 200))
    }
}

/// The values of the page.
struct ChangesPage: Sendable {
    /// The maximum number of changes on the page.
    static let shown = 20

    struct Change: Sendable {
        var id: String
        var heading: String
        var summary: String
        var address: String
        var text: String
        /// The file's current text. `nil` if the file does not exist yet.
        var current: String?
        var mayRelease: Bool
        var isOutdated: Bool
        /// The numbers of the changes that are released with this one, such as `changes 3 and 4`.
        var together: String?

        init(_ detail: ChangeDetailResult, mayRelease: Bool) {
            let change = detail.change
            id = "change-\(change.id)"
            heading = "Change \(change.id): \(change.kind) \(change.name)"
            summary = "\(PersonName.shown(change.author)), \(change.askedAt.shownTime)"
            address = "/changes/\(change.id)"
            text = detail.text
            current = detail.current
            self.mayRelease = mayRelease
            isOutdated = change.isOutdated
            together = change.together?.changeNumbers
        }
    }

    var changes: [Change]
    var isEmpty: Bool
    var problem: [String]
}
