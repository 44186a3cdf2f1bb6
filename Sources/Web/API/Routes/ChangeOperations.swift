import Campaigns
import Hummingbird
import Model

/// The operations for changes to files that wait for release. An account that may start runs releases them.
struct ChangeOperations: Sendable {
    struct ReleaseBody: Codable, Sendable {
        /// The `texts` of the change as last read: 409 if other texts belong together now. Required if `together` names
        /// other changes.
        var seen: [ChangeText]?
    }

    struct RejectBody: Codable, Sendable {
        /// The reason, for the author and the audit log.
        var reason: String?
        /// The `texts` of the change as last read: 409 if other texts belong together now. Required if `together` names
        /// other changes.
        var seen: [ChangeText]?
    }

    let cases: UseCases

    private static let change = Operation.Parameter.path("change", "The number of a change.", .integer)

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/changes", id: "listChanges", subject: "Campaigns",
                about:
                    "Texts of campaign and template files that wait for release: texts that an account without permission `run` "
                    + "writes for a campaign that starts automatically.",
                permission: .read, answers: [.init(.ok, "The changes.", .json(ListPage<ChangeResult>.self))]
            ) { request in
                try .json(ListPage(items: try await cases.changes(for: request.caller), next: nil))
            },
            Operation(
                method: .get, path: "/changes/{change}", id: "getChange", subject: "Campaigns",
                about:
                    "A waiting change, with its text, the file's current text, and the identities of all texts that belong "
                    + "together.", permission: .read,
                parameters: [Self.change],
                answers: [.init(.ok, "The change.", .json(ChangeDetailResult.self))], problems: [.notFound]
            ) { request in
                try .json(try await cases.change(try request.number("change", of: "change"), for: request.caller))
            },
            Operation(
                method: .post, path: "/changes/{change}/release", id: "releaseChange", subject: "Campaigns",
                about:
                    "Writes the text to its file, and with it the texts of the changes in `together`, if no file has "
                    + "changed since its author read it. `seen` names all texts that the caller has read, as in the `texts` "
                    + "of `getChange`; 409 if others belong together now. A change with others in `together` requires "
                    + "`seen`.",
                permission: .run, parameters: [Self.change],
                body: .json(ReleaseBody.self), needsBody: false,
                answers: [.init(.ok, "The file was written.", .json(ChangeResult.self))],
                problems: [.notFound, .conflict, .unprocessableContent, .internalServerError]
            ) { request in
                let number = try request.number("change", of: "change")
                let body = try await request.optionalBody(ReleaseBody.self)
                return try .json(try await cases.release(number, seen: body?.seen, by: request.caller))
            },
            Operation(
                method: .post, path: "/changes/{change}/reject", id: "rejectChange", subject: "Campaigns",
                about:
                    "Rejects the text, and its author's texts in `together`; the files stay unchanged. `seen` is as for "
                    + "`releaseChange`.",
                permission: .run, parameters: [Self.change],
                body: .json(RejectBody.self), needsBody: false,
                answers: [.init(.ok, "The text was rejected.", .json(ChangeResult.self))],
                problems: [.notFound, .conflict, .unprocessableContent]
            ) { request in
                let number = try request.number("change", of: "change")
                let body = try await request.optionalBody(RejectBody.self)
                return try .json(
                    try await cases.reject(number, seen: body?.seen, reason: body?.reason, by: request.caller))
            },
        ].readingTexts
    }
}

extension UseCases {
    /// Returns the changes of the apps that the caller sees.
    func changes(for caller: Caller) async throws -> [ChangeResult] {
        var seen: [ChangeResult] = []
        for change in try await files.changes() {
            if caller.topic == nil {
                seen.append(change)
            } else if await CampaignAccess(self, caller).sees(change) {
                seen.append(change)
            }
        }
        return seen
    }

    /// Returns a change. Throws "not found" if its file or its new text belongs to another app.
    func change(_ id: Int64, for caller: Caller) async throws -> ChangeDetailResult {
        let detail = try await files.change(id)
        guard caller.topic != nil else { return detail }
        guard let kind = ManageFiles.Kind(rawValue: detail.change.kind),
            (try? CampaignAccess(self, caller).requireWriting(kind, detail.change.name, text: detail.text)) != nil
        else { throw Problem.notFound("no waiting change has the number \(id)") }
        return detail
    }

    func release(_ id: Int64, seen: [ChangeText]?, by caller: Caller) async throws -> ChangeResult {
        for other in try await change(id, for: caller).change.together ?? [] {
            _ = try await change(other, for: caller)
        }
        return try await files.release(id, seen: seen, by: caller.actor, now: now)
    }

    func reject(_ id: Int64, seen: [ChangeText]?, reason: String?, by caller: Caller) async throws -> ChangeResult {
        _ = try await change(id, for: caller)
        return try await files.reject(id, seen: seen, reason: reason, by: caller.actor, now: now)
    }
}
