import Campaigns
import Hummingbird
import Model

/// The changes to files that wait for release, each with the file's current text.
struct ChangePages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/changes", .read) { try await show($0, at: $0.query("change").flatMap { Int64($0) }, problem: nil) },
            .post("/changes/{change}/release", .run) { request in
                try await act(request) { id, seen, _, caller in
                    _ = try await cases.release(id, seen: seen, by: caller)
                }
            },
            .post("/changes/{change}/reject", .run) { request in
                try await act(request) { id, seen, reason, caller in
                    _ = try await cases.reject(id, seen: seen, reason: reason, by: caller)
                }
            },
        ])
    }

    private func act(
        _ request: PageRequest, _ body: (Int64, [ChangeText]?, String?, Caller) async throws -> Void
    ) async throws -> Response {
        let id = try request.number("change", of: "change")
        let form = try await request.form()
        let reason = form["reason"].flatMap { $0.isEmpty ? nil : $0 }
        do {
            try await body(id, form["seen"].map(ChangesPage.texts(ofField:)), reason, try request.caller)
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            return try await show(request, at: id, problem: problem)
        }
        return PageRequest.seeOther("/changes")
    }

    /// - Parameter id: a change of the page to show; `nil` for the first page.
    private func show(_ request: PageRequest, at id: Int64?, problem: Problem?) async throws -> Response {
        let caller = try request.caller
        let listed = try await cases.changes(for: caller)
        let pages = ChangesPage.pages(of: listed)
        let number = pages.firstIndex { $0.contains { $0.id == id } } ?? 0
        let before = pages.prefix(number).reduce(0) { $0 + $1.count }
        let shown = pages.dropFirst(number).first ?? []
        let beside = [number - 1, number + 1].map { other in
            pages.indices.contains(other) ? pages[other].first.map { "/changes?change=\($0.id)" } : nil
        }
        var changes: [ChangesPage.Change] = []
        for change in shown {
            // Another request may have released or rejected the change in the meantime.
            guard let detail = try await cases.files.detail(change, of: listed) else { continue }
            changes.append(ChangesPage.Change(detail, mayRelease: caller.role.may(.run)))
        }
        return try request.page(
            .changes, title: "Waiting changes",
            ChangesPage(
                changes: changes, isEmpty: listed.isEmpty,
                count: pages.count > 1
                    ? "Changes \(before + 1) to \(before + shown.count) of \(listed.count)" : nil,
                earlier: beside[0], later: beside[1], problem: problem?.detail.messageLines ?? []),
            status: .init(code: problem?.status ?? 200))
    }
}
