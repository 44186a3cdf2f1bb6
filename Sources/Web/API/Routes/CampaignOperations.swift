import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The operations for campaign files and template files: list, read, validate, and write if editing is on.
struct CampaignOperations: Sendable {
    /// A text to validate as if it were in its file.
    struct TextBody: Codable, Sendable {
        var text: String
    }

    let cases: UseCases

    static let campaign = Operation.Parameter.path("campaign", "The name of a campaign's file, without `.yaml`.")
    private static let template = Operation.Parameter.path(
        "template", "The name of a template's file, without `.yaml`.")
    /// The conditions of a write. The caller must send one of them, to state which version of the file it has read.
    private static let conditions: [Operation.Parameter] = [
        .header("If-Match", "The ETag of the text to replace."),
        .header("If-None-Match", "For a file that does not exist yet.", allowed: ["*"]),
    ]
    private static let subject = "Campaigns"
    /// The problems of writing a file.
    private static let writingProblems: [HTTPResponse.Status] = [
        .forbidden, .notFound, .conflict, .preconditionFailed, .contentTooLarge, .unprocessableContent,
        .preconditionRequired,
        .internalServerError,
    ]

    var all: [Operation] {
        ([listCampaigns, getCampaign, validateCampaign, putCampaign] + ofTemplates).readingTexts
    }

    private var listCampaigns: Operation {
        Operation(
            method: .get, path: "/campaigns", id: "listCampaigns", subject: Self.subject,
            about: "The campaigns of the configured folder, valid or not, with their next start and last run.",
            permission: .read, answers: [.init(.ok, "The campaigns.", .json(ListPage<CampaignResult>.self))]
        ) { request in
            let all = try await cases.files.campaigns(now: cases.now)
            return try .json(ListPage(items: all.filter { request.caller.sees($0.topic ?? "") }, next: nil))
        }
    }

    private var getCampaign: Operation {
        Operation(
            method: .get, path: "/campaigns/{campaign}", id: "getCampaign", subject: Self.subject,
            about:
                "A campaign's text, its errors and warnings as `fanfare validate` prints them, and its templates. The "
                + "ETag must be sent when the text is replaced.",
            permission: .read, parameters: [Self.campaign],
            answers: [.init(.ok, "The campaign.", .json(CampaignDetailResult.self))], problems: [.notFound]
        ) { request in
            let (name, access) = (request.path("campaign"), CampaignAccess(cases, request.caller))
            try access.require(name)
            var detail = try await cases.files.campaign(name, now: cases.now)
            for index in detail.templates.indices {
                detail.templates[index].template = access.visible(detail.templates[index].template)
            }
            return try .json(detail, headers: Self.tag(detail.etag))
        }
    }

    private var validateCampaign: Operation {
        Operation(
            method: .post, path: "/campaigns/{campaign}/validate", id: "validateCampaign", subject: Self.subject,
            about: "Checks a text as if it were in the campaign's file, with the other files as they are. Writes "
                + "nothing; the file need not exist.",
            permission: .plan, parameters: [Self.campaign], body: .json(TextBody.self),
            answers: [.init(.ok, "The errors and warnings.", .json(ValidationResult.self))],
            problems: [.notFound, .contentTooLarge, .unprocessableContent]
        ) { request in
            let body = try await request.body(TextBody.self)
            let access = CampaignAccess(cases, request.caller)
            return try .json(try await access.validatedForCaller(.campaign, request.path("campaign"), text: body.text))
        }
    }

    private var putCampaign: Operation {
        Operation(
            method: .put, path: "/campaigns/{campaign}", id: "putCampaign", subject: Self.subject,
            about:
                "Writes a campaign's file, whole or not at all, if `http.editing` is on. `If-Match` with the ETag of "
                + "the text that is replaced, or `If-None-Match: *` for a new file. A text with errors is refused. If "
                + "the campaign starts automatically, a text written by an account without permission `run` waits for release.",
            permission: .edit, parameters: [Self.campaign] + Self.conditions, body: .text("application/yaml"),
            answers: Self.written, problems: Self.writingProblems
        ) { request in
            let name = request.path("campaign")
            let access = CampaignAccess(cases, request.caller)
            return try await write(.campaign, name, request) { text in try access.requireWriting(name, text: text) }
        }
    }

    private static let written: [Operation.Answer] = [
        .init(.ok, "The file was replaced.", .json(WrittenFileResult.self)),
        .init(.created, "The file was created.", .json(WrittenFileResult.self)),
        .init(
            .accepted,
            "The file is unchanged: the text waits as change `held` for release by an account with permission `run`.",
            .json(WrittenFileResult.self)),
    ]

    private func write(
        _ kind: ManageFiles.Kind, _ name: String, _ request: APIRequest, isAllowed: (String) throws -> Void
    ) async throws -> Response {
        try cases.files.requireEditing()
        let data = Data(try await request.collected(bytesMax: ManageFiles.bytesMax).readableBytesView)
        guard let text = String(validating: data, as: UTF8.self) else {
            throw Problem.invalid([.init(pointer: "", detail: "the body is not UTF-8 text; save it as UTF-8")])
        }
        try isAllowed(text)
        do {
            let written = try await cases.files.write(
                kind, name, text: text, try Self.condition(request.request), mayStart: request.caller.role.may(.run),
                by: request.caller.actor, now: cases.now)
            let status: HTTPResponse.Status = written.held != nil ? .accepted : written.isNew ? .created : .ok
            return try .json(written, status, headers: Self.tag(written.etag))
        } catch let refusal as FileRefusal {
            return try Self.response(to: refusal)
        }
    }

    /// Returns the response to a refusal. It contains the ETag of the current text, if that text was in the way.
    private static func response(to refusal: FileRefusal) throws -> Response {
        var response = try Problem(refusal).response()
        if case .changedMeanwhile(_, let etag?) = refusal { response.headers[.eTag] = "\"\(etag)\"" }
        if case .unconditional(_, let etag?) = refusal { response.headers[.eTag] = "\"\(etag)\"" }
        return response
    }

    /// Returns the condition, or `nil` if there is none. `If-Match: *` names no version that the caller has read, so it
    /// counts as no condition.
    private static func condition(_ request: Request) throws -> ManageFiles.Condition? {
        if request.headers[.ifNoneMatch]?.trimmingCharacters(in: .whitespaces) == "*" { return .new }
        guard let tag = request.headers[.ifMatch]?.trimmingCharacters(in: .whitespaces), tag != "*" else { return nil }
        return .unchanged(etag: tag.replacingSign("\"", with: ""))
    }

    private static func tag(_ etag: String?) -> HTTPFields { etag.map { [.eTag: "\"\($0)\""] } ?? [:] }
}

/// The operations for templates.
extension CampaignOperations {
    private var ofTemplates: [Operation] {
        [listTemplates, getTemplate, validateTemplate, putTemplate, deleteTemplate]
    }

    private var listTemplates: Operation {
        Operation(
            method: .get, path: "/templates", id: "listTemplates", subject: Self.subject,
            about: "The templates of the configured folder, with the campaigns that use them.", permission: .read,
            answers: [.init(.ok, "The templates.", .json(ListPage<TemplateResult>.self))]
        ) { request in
            let access = CampaignAccess(cases, request.caller)
            let seen = try cases.files.templates().filter { access.seesTemplate($0.name) }
            return try .json(ListPage(items: seen.map(access.visible), next: nil))
        }
    }

    private var getTemplate: Operation {
        Operation(
            method: .get, path: "/templates/{template}", id: "getTemplate", subject: Self.subject,
            about: "A template's text, with its errors and warnings, including those found through a campaign.",
            permission: .read, parameters: [Self.template],
            answers: [.init(.ok, "The template.", .json(TemplateDetailResult.self))], problems: [.notFound]
        ) { request in
            let (name, access) = (request.path("template"), CampaignAccess(cases, request.caller))
            try access.requireTemplate(name)
            var detail: TemplateDetailResult
            do {
                detail = try cases.files.template(name)
            } catch let failure as Failure where failure.kind == .notFound && request.caller.topic != nil {
                // The message suggests the nearest template, which may be another app's.
                throw Problem.notFound("no template \"\(name)\"")
            }
            detail.template = access.visible(detail.template)
            return try .json(detail, headers: Self.tag(detail.etag))
        }
    }

    private var validateTemplate: Operation {
        Operation(
            method: .post, path: "/templates/{template}/validate", id: "validateTemplate", subject: Self.subject,
            about:
                "Checks a text as if it were in the template's file, with the campaigns that use it. Writes nothing.",
            permission: .plan, parameters: [Self.template], body: .json(TextBody.self),
            answers: [.init(.ok, "The errors and warnings.", .json(ValidationResult.self))],
            problems: [.notFound, .contentTooLarge, .unprocessableContent]
        ) { request in
            let body = try await request.body(TextBody.self)
            let access = CampaignAccess(cases, request.caller)
            return try .json(try await access.validatedForCaller(.template, request.path("template"), text: body.text))
        }
    }

    private var putTemplate: Operation {
        Operation(
            method: .put, path: "/templates/{template}", id: "putTemplate", subject: Self.subject,
            about:
                "Writes a template's file, like a campaign's. A text that would cause an error in a campaign is refused.",
            permission: .edit, parameters: [Self.template] + Self.conditions, body: .text("application/yaml"),
            answers: Self.written, problems: Self.writingProblems
        ) { request in
            let name = request.path("template")
            let access = CampaignAccess(cases, request.caller)
            return try await write(.template, name, request) { _ in try access.requireWritingTemplate(name) }
        }
    }

    private var deleteTemplate: Operation {
        Operation(
            method: .delete, path: "/templates/{template}", id: "deleteTemplate", subject: Self.subject,
            about:
                "Deletes the file of a template that no campaign uses, if `http.editing` is on. `If-Match` with the ETag "
                + "of the text that is deleted. A template that a campaign uses, or will use once a change is released, "
                + "is kept.",
            permission: .edit, parameters: [Self.template, Self.conditions[0]],
            answers: [.init(.ok, "The template that was deleted.", .json(TemplateResult.self))],
            problems: [
                .forbidden, .notFound, .conflict, .preconditionFailed, .unprocessableContent, .preconditionRequired,
                .internalServerError,
            ]
        ) { request in
            let access = CampaignAccess(cases, request.caller)
            do {
                let condition = try Self.condition(request.request)
                return try .json(try await access.deleteTemplate(request.path("template"), condition))
            } catch let refusal as FileRefusal {
                return try Self.response(to: refusal)
            }
        }
    }
}
