package import Campaigns
import Foundation
package import Guide
import HTTPTypes
import Hummingbird
import Logging
import Model

/// The pages and the API, built on the use cases.
package struct WebConsole: Sendable {
    let cases: UseCases
    let authenticator: Authenticator
    private let feed: LiveFeed
    private let streams: LiveStreams
    private let document: OpenAPIDocument
    private let version: String
    private let guide: @Sendable () -> Guide
    /// Records the routes that read texts without declaring it.
    let undeclaredTexts = UndeclaredTexts()

    /// - Parameters:
    ///   - link: the one-time sign-in link for the operator who started the server.
    ///   - version: the version of this program.
    ///   - guide: the guide that the pages show.
    package init(cases: UseCases, link: OneTimeLink, version: String, guide: @escaping @Sendable () -> Guide) {
        self.cases = cases
        authenticator = Authenticator(cases, link: link)
        feed = LiveFeed(cases: cases)
        streams = LiveStreams(cases: cases)
        self.version = version
        self.guide = guide
        document = OpenAPIDocument(Self.operations(cases), version: version)
    }

    /// All operations of the API. The OpenAPI document is built from them, too.
    var operations: [Operation] { Self.operations(cases) }

    private static func operations(_ cases: UseCases) -> [Operation] {
        RunOperations(cases: cases).all + CorrectionOperations(cases: cases).all + ApprovalOperations(cases: cases).all
            + CampaignOperations(cases: cases).all + ChangeOperations(cases: cases).all
            + StartOperations(cases: cases).all
            + StopOperations(cases: cases).all + ScheduleOperations(cases: cases).all
            + DeviceOperations(cases: cases).all + FeedbackOperations(cases: cases).all
            + SegmentOperations(cases: cases).all
            + AuditOperations(cases: cases).all + HealthOperations(cases: cases).all + TokenOperations(cases: cases).all
    }

    var pages: [PageRoute] {
        Asset.routes + [document.route] + SignInPages(authenticator: authenticator).routes
            + RunPages(cases: cases, feed: feed, version: version).routes + CorrectionPages(cases: cases).routes
            + ComparePages(cases: cases).routes + StopPages(cases: cases).routes + ChangePages(cases: cases).routes
            + CampaignPages(cases: cases).routes
            + ComposerPages(cases: cases).routes + NewCampaignPages(cases: cases).routes
            + SetupPages(cases: cases).routes
            + NewFilePages(cases: cases).routes + TemplatePages(cases: cases).routes
            + CalendarPages(cases: cases).routes + ApprovalPages(cases: cases).routes
            + NextStartPages(cases: cases).routes + PlanPages(cases: cases).routes
            + SegmentPages(cases: cases).routes + DevicePages(cases: cases).routes + AuditPages(cases: cases).routes
            + HealthPages(cases: cases).routes + PeoplePages(cases: cases).routes
            + JoinPages(authenticator: authenticator).routes
            + GuidePages(load: guide).routes + ZonePages().routes
    }

    /// The routes of the pages and the API: each method and path.
    var routes: [(method: HTTPRequest.Method, path: String)] {
        operations.map { ($0.method, Operation.prefix + $0.path) } + pages.map { ($0.method, $0.path) }
    }

    func add(to router: Router<WebContext>) {
        for operation in operations {
            router.on(operation.routerPath, method: operation.method) { request, context in
                try await answer(operation, request, context)
            }
        }
        for page in pages {
            router.on(RouterPath(page.path), method: page.method) { request, context in
                try await answer(page, request, context)
            }
        }
    }

    private func answer(_ operation: Operation, _ request: Request, _ context: WebContext) async throws -> Response {
        var caller: Caller?
        do {
            let asking = try await authenticator.program(request, context)
            caller = asking
            context.becameKnown()
            try asking.require(operation.permission)
            let known = try APIRequest(request, context, asking, operation) {
                try await authenticator.isStill(asking, request, context)
            }
            return try await reading(for: asking, context, isChange: operation.isChange) {
                try await TextThreads.serve(
                    operation.id, operation.permission, readsTexts: operation.readsTexts, undeclared: undeclaredTexts
                ) { try await operation.handle(known) }
            }
        } catch {
            return try problem(error, context, caller).response()
        }
    }

    private func answer(_ page: PageRoute, _ request: Request, _ context: WebContext) async throws -> Response {
        var frame = PageFrame(request)
        do {
            try CrossSite.check(request)
            frame.visitor = try await authenticator.person(request, context)
            if frame.visitor != nil { context.becameKnown() }
            if let permission = page.permission {
                guard let visitor = frame.visitor else {
                    return try await SignInPages.signInFirst(
                        PageRequest(request: request, context: context, frame: frame))
                }
                try visitor.require(permission)
                if page.isWhole { await frame.read(cases, for: visitor) }
            }
            let visitor = frame.visitor
            let known = PageRequest(request: request, context: context, frame: frame) {
                guard let visitor else { return true }
                return try await authenticator.isStill(visitor, request, context)
            }
            if page.isChange { try await known.requireField() }
            let response = try await ViewerZone.$current.withValue(frame.zone) {
                try await reading(for: known.visitor, context, isChange: page.isChange) {
                    try await TextThreads.serve(
                        "\(page.method) \(page.path)", page.permission, readsTexts: page.readsTexts,
                        undeclared: undeclaredTexts
                    ) { try await page.handle(known) }
                }
            }
            guard let visitor, LiveFeed.isStream(response) else { return response }
            return try streams.admitted(response, of: visitor.name) {
                try await authenticator.isStill(visitor, request, context)
            }
        } catch {
            return try problemPage(problem(error, context, frame.visitor), in: frame, request)
        }
    }

    /// Returns the page that reports a problem.
    private func problemPage(_ problem: Problem, in frame: PageFrame, _ request: Request) throws -> Response {
        try PageRenderer.response(
            .problem, title: problem.title, ProblemPage(problem), in: frame, path: request.uri.path,
            status: .init(code: problem.status),
            headers: problem.retryAfter.map { [.retryAfter: "\($0)"] } ?? [:])
    }

    /// Returns the page for a browser that asks for an address that does not exist, or for one that only takes forms.
    func unknownPage(_ request: Request, _ context: WebContext) async throws -> Response {
        var frame = PageFrame(request)
        if let visitor = try? await authenticator.person(request, context) { await frame.read(cases, for: visitor) }
        let problem = Problem(
            404, "not_found", "Page not found",
            "There is no page at this address. Choose a page from the menu, or go back.")
        return try problemPage(problem, in: frame, request)
    }

    /// Applies the caller's limit on expensive reads to the request's work and to the body that is written later. A
    /// change continues after its client has left, so that it is not left incomplete.
    private func reading(
        for caller: Caller?, _ context: WebContext, isChange: Bool, _ work: () async throws -> Response
    ) async throws -> Response {
        let untilUnwanted: @Sendable () async -> Void = { await context.untilUnwanted() }
        let reads = cases.requestReads(
            of: caller?.name ?? context.clientAddress, presence: isChange ? nil : untilUnwanted)
        var response = try await reads.within(work)
        guard response.body.contentLength == nil else { return response }
        response.body = ResponseBody { [body = response.body] writer in
            try await reads.within { try await body.write(writer) }
        }
        return response
    }

    /// Returns the problem to send to the client. Logs errors of the server itself.
    private func problem(_ error: any Error, _ context: WebContext, _ caller: Caller?) -> Problem {
        var problem = Problem(error, for: caller)
        if problem.detail == Problem.ofDatabase { problem.detail += " for request \(context.id)" }
        // A cancelled request has no client to inform, and its cause is known.
        if problem.status >= 500, !(error is CancellationError) {
            context.logger.error(
                "request failed",
                metadata: ["error": "\(Redaction.withoutTokens("\(error)"))", "request": "\(context.id)"])
        }
        return problem
    }
}

/// The page that reports a problem: its title, and its detail in lines.
struct ProblemPage: Sendable {
    var heading: String
    var lines: [PageHTML]

    init(_ problem: Problem) {
        heading = problem.title
        lines = problem.detail.split(separator: "\n").map { PageHTML(message: String($0)) }
    }
}
