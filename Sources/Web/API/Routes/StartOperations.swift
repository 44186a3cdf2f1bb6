import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The operations that lead from a campaign to a run: plan, render, test on one device, start.
struct StartOperations: Sendable {
    struct PlanBody: Codable, Sendable {
        /// The values of the campaign's variables. The other variables have their default values.
        var variables: [String: String]?
        /// The occurrence of the schedule. By default, the next one.
        var occurrence: String?
        /// Whether to plan as if the run started now, independently of the schedule.
        var now: Bool?
    }

    struct RenderBody: Codable, Sendable {
        var variables: [String: String]?
        /// A BCP 47 tag. By default, the template's default locale.
        var locale: String?
        /// An installation id, a user id, a token or its last 8 characters. It replaces `locale`.
        var device: String?
        var variant: String?
    }

    struct TestBody: Codable, Sendable {
        var variables: [String: String]?
        var device: String
        var variant: String?
    }

    struct StartBody: Codable, Sendable {
        /// The permanent name of this run. A later request with the same name returns the same run.
        var occurrence: String
        var variables: [String: String]?
        /// The hash of a plan. The run sends exactly this plan.
        var plan: String?
        /// The guards to override: `max_reach`, `min_reach`, `max_growth`. The audit log records them.
        var overrideGuards: [String]?
    }

    private static let subject = "Campaigns"

    let cases: UseCases

    var all: [Operation] { [plan, render, test, start].readingTexts }

    private var plan: Operation {
        Operation(
            method: .post, path: "/campaigns/{campaign}/plan", id: "planCampaign", subject: Self.subject,
            about:
                "The devices, texts and times of a run, as `fanfare plan` prints them; nothing is sent. `plan` is the "
                + "hash to start with.",
            permission: .plan, parameters: [CampaignOperations.campaign], body: .json(PlanBody.self),
            answers: [.init(.ok, "The plan.", .json(PlanResult.self))], problems: [.notFound, .unprocessableContent]
        ) { request in
            let body = try await request.body(PlanBody.self)
            let definition = try definition(request, body.variables)
            try await CampaignAccess(cases, request.caller).requireSegments(of: definition.campaign)
            let planned = try await cases.planning(definition.campaign.topic).plan(
                definition, typed: Set((body.variables ?? [:]).keys), occurrence: body.occurrence,
                isNow: body.now ?? false, by: request.caller.actor,
                now: cases.now)
            return try .json(planned.result)
        }
    }

    private var render: Operation {
        Operation(
            method: .post, path: "/campaigns/{campaign}/render", id: "renderCampaign", subject: Self.subject,
            about: "One payload as it would be sent, for a language or a device, as `fanfare render` prints it.",
            permission: .plan, parameters: [CampaignOperations.campaign], body: .json(RenderBody.self),
            answers: [.init(.ok, "The payload, its size and its headers.", .json(RenderingResult.self))],
            problems: [.notFound, .unprocessableContent]
        ) { request in
            let body = try await request.body(RenderBody.self)
            guard body.locale == nil || body.device == nil else {
                throw Problem.invalid([.init(pointer: "/device", detail: "give locale or device, not both")])
            }
            let definition = try definition(request, body.variables).filledForShow().definition
            let rendering =
                if let device = body.device {
                    try await cases.rendering(
                        definition, device: device, variant: body.variant, sees: request.caller.sees)
                } else {
                    try RenderPayload.rendering(definition, locale: body.locale, variant: body.variant)
                }
            return try .json(rendering.result)
        }
    }

    private var test: Operation {
        Operation(
            method: .post, path: "/campaigns/{campaign}/test-send", id: "testSendCampaign", subject: Self.subject,
            about:
                "Sends the campaign to one device, regardless of audience, guards and holdout. It is a run of its own, "
                + "which the daemon sends: read that run for the outcome.",
            permission: .testSend, parameters: [CampaignOperations.campaign], body: .json(TestBody.self),
            answers: [.init(.accepted, "The run was created; see Location.", .json(StartedResult.self))],
            problems: [.notFound, .unprocessableContent, .internalServerError]
        ) { request in
            let body = try await request.body(TestBody.self)
            let definition = try definition(request, body.variables)
            let run = try await cases.tested(
                definition, device: body.device, variant: body.variant, by: request.caller)
            let started = StartCampaign.Started(run: run, isNew: true, warnings: [])
            return try .json(started.result, .accepted, headers: Self.location(run))
        }
    }

    private var start: Operation {
        Operation(
            method: .post, path: "/campaigns/{campaign}/runs", id: "startCampaign", subject: Self.subject,
            about:
                "Starts a run, or returns the occurrence's existing run. An occurrence of the schedule is sent as the "
                + "daemon would; any other name starts a run now. With `plan` nothing is sent if the plan has changed "
                + "since.",
            permission: .run, parameters: [CampaignOperations.campaign], body: .json(StartBody.self),
            answers: [
                .init(.ok, "The occurrence already has this run; nothing was done.", .json(StartedResult.self)),
                .init(.accepted, "The run was created; see Location.", .json(StartedResult.self)),
            ],
            problems: [.notFound, .conflict, .unprocessableContent, .serviceUnavailable, .internalServerError]
        ) { request in
            let body = try await request.body(StartBody.self)
            let started = try await cases.started(
                request.path("campaign"), try Self.order(body), by: request.caller)
            return try .json(
                started.result, started.isNew ? .accepted : .ok, headers: Self.location(started.run))
        }
    }

    private func definition(_ request: APIRequest, _ variables: [String: String]?) throws -> RunDefinition {
        let name = request.path("campaign")
        try CampaignAccess(cases, request.caller).require(name)
        return try cases.files.source(name).definition(with: variables ?? [:], plannedAt: cases.now)
    }

    private static func order(_ body: StartBody) throws -> StartCampaign.Order {
        var problems = ProblemList()
        let plan = body.plan.flatMap { PlanToken($0) }
        if let text = body.plan, plan == nil {
            problems.add(
                .init(pointer: "/plan", detail: PlanToken.fault(text).messages.joined(separator: "; ")))
        }
        var guards: Set<GuardName> = []
        for (index, text) in (body.overrideGuards ?? []).enumerated() {
            if let name = GuardName(rawValue: text) {
                guards.insert(name)
            } else {
                problems.add(
                    .init(
                        pointer: "/override_guards/\(index)",
                        detail: "\"\(text.shownShort)\" is not a guard; use one of \(Self.guardNames)"))
            }
        }
        try problems.throwIfAny()
        return StartCampaign.Order(
            occurrence: body.occurrence, variables: body.variables ?? [:], plan: plan, overriding: guards)
    }

    private static let guardNames = GuardName.allCases.map(\.rawValue).joined(separator: ", ")

    private static func location(_ run: Run) -> HTTPFields { [.location: "\(Operation.prefix)/runs/\(run.id)"] }
}

extension UseCases {
    /// Starts a campaign. For a caller confined to one app, another app's campaign does not exist.
    func started(
        _ campaign: String, _ order: StartCampaign.Order, by caller: Caller
    ) async throws -> StartCampaign.Started {
        do {
            if caller.topic != nil {
                let access = CampaignAccess(self, caller)
                try access.require(campaign)
                try await access.requireSegments(of: files.source(campaign).campaign)
            }
            return try await start.start(campaign, in: files, order, by: caller.actor, now: now) { topic in
                try caller.requireTopic(topic, orNotFound: "no campaign \"\(campaign)\"")
            }
        } catch let failure as Failure where failure.kind == .notFound && caller.topic != nil {
            throw Problem.notFound("no campaign \"\(campaign)\"")
        }
    }

    /// Creates a test run of a campaign, which the daemon sends.
    func tested(
        _ definition: RunDefinition, device: String, variant: String?, by caller: Caller
    ) async throws -> Run {
        guard !device.isEmpty else {
            throw Failure(.invalidData, "name a device: an installation id, a user id or a token's last 8 characters")
        }
        // The daemon cannot send for an app that the configuration does not contain.
        _ = try configuration().app(for: definition.campaign.topic)
        return try await tests.start(
            definition, device: device, variant: variant, isHandedOver: true, by: caller.actor, now: now,
            sees: caller.sees
        ).run
    }
}
