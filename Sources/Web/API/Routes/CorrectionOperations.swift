import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The operations that correct or recall what a run has sent.
struct CorrectionOperations: Sendable {
    struct CorrectBody: Codable, Sendable {
        /// The template of the correction. By default, the template that the campaign prepared, or with `variables` the
        /// run's own template.
        var template: String?
        /// The corrected values of variables. All others are those of the corrected run.
        var variables: [String: String]?
        /// Whether to send another correction after an earlier one.
        var again: Bool?
        /// The reason to send an unprepared text to many devices without approvals.
        var reason: String?
    }

    struct RecallBody: Codable, Sendable {
        /// Whether to send another recall after an earlier one.
        var again: Bool?
    }

    let cases: UseCases

    private static let run = Operation.Parameter.path("run", "The number of a run.", .integer)
    private static let problems: [HTTPResponse.Status] = [
        .notFound, .conflict, .unprocessableContent, .serviceUnavailable,
    ]

    var all: [Operation] {
        [
            Operation(
                method: .post, path: "/runs/{run}/correct", id: "correctRun", subject: "Runs",
                about:
                    "Replaces a run's texts with others, on exactly the devices that got them, in reverse order: the "
                    + "last device first. The correction is a run of its own, which the daemon sends.",
                permission: .run, parameters: [Self.run], body: .json(CorrectBody.self), needsBody: false,
                answers: [.init(.accepted, "The run was created; see Location.", .json(StartedResult.self))],
                problems: Self.problems
            ) { request in
                let body = try await request.optionalBody(CorrectBody.self) ?? CorrectBody()
                return try await start(
                    request,
                    CorrectRun.Order(
                        .replace, template: body.template, variables: body.variables ?? [:],
                        isAgain: body.again ?? false, reason: body.reason))
            },
            Operation(
                method: .post, path: "/runs/{run}/recall", id: "recallRun", subject: "Runs",
                about: "Removes a run's notifications from the screens, if the app can: a background push with the "
                    + "collapse id under `recall`, to exactly the devices that got them. The daemon sends it.",
                permission: .run, parameters: [Self.run], body: .json(RecallBody.self), needsBody: false,
                answers: [.init(.accepted, "The run was created; see Location.", .json(StartedResult.self))],
                problems: Self.problems
            ) { request in
                let body = try await request.optionalBody(RecallBody.self)
                return try await start(request, CorrectRun.Order(.recall, isAgain: body?.again ?? false))
            },
        ].readingTexts
    }

    private func start(_ request: APIRequest, _ order: CorrectRun.Order) async throws -> Response {
        let run = try await cases.run(try request.number("run", of: "run"), for: request.caller)
        let access = CampaignAccess(cases, request.caller)
        let started = try await cases.correcting.start(
            run, order, by: request.caller.actor, now: cases.now, sees: access.seesTemplate)
        return try .json(
            started.result, .accepted, headers: [.location: "\(Operation.prefix)/runs/\(started.run.id)"])
    }
}
