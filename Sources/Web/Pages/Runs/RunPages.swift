import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The list of runs, and each run with its progress and its actions.
struct RunPages: Sendable {
    private static let unreadableNamed = 10

    private static let deliveriesShown = 100
    /// The number of silent runs up to which they are counted.
    private static let silentCounted = 200
    /// The maximum width of a run's first words in the list.
    private static let excerptShown = 70

    let cases: UseCases
    let feed: LiveFeed
    /// The version of this program, for reports.
    let version: String

    var routes: [PageRoute] {
        [
            .get("/", .read, list), .get("/live", .read, liveList), .get("/state", .read, listState),
            .get("/runs/{run}", .read, show), .get("/runs/{run}/live", .read, live),
            .get("/runs/{run}/state", .read, state),
            .get("/runs/{run}/deliveries", .read, deliveries), .get("/runs/{run}/deliveries.csv", .read, lines),
            .get("/runs/{run}/report.html", .read, report), .get("/runs/{run}/report.json", .read, reportJSON),
            .post("/runs/{run}/pause", .halt, pause), .post("/runs/{run}/cancel", .halt, cancel),
            .post("/runs/{run}/recall", .run, recall), .post("/runs/{run}/resume", .run, resume),
            .post("/runs/{run}/approve", .approve, approve).readingTexts,
        ]
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let apps = caller.topic == nil ? cases.configuration().apps.map(\.topic) : []
        let query: RunListQuery
        do {
            query = try RunListQuery(request)
        } catch {
            let problem = Problem(error)
            guard problem.status < 500 else { throw error }
            var page = RunList(request, apps: apps, nil, FoundRuns(), [])
            page.filters.problem = problem.detail
            return try request.page(.runs, title: "Broadcasts", page, status: .init(code: problem.status))
        }
        var (found, views) = try await feed.list(query)
        let languages = request.languages
        let opens = try await cases.runningReports.opens(of: found.runs)
        for (index, run) in found.runs.enumerated() {
            if let opened = opens[run.id] { views[index].openedShare = opened.devices.share(of: opened.of) }
            views[index].excerpt = run.definition.excerpt(in: languages)?.cut(toWidth: Self.excerptShown)
            let kind = run.definition.campaign.pushType
            views[index].kind = kind == .alert ? nil : kind.rawValue
        }
        var page = RunList(request, apps: apps, query, found, views)
        if query.leavesOutSilent, query.position == .newest {
            page.add(try await silent(since: found.runs.last?.createdAt, query))
        }
        page.isSending = try await StopPages.isSending(cases)
        if query == .latest(topic: caller.topic) {
            page.unreadable = try await cases.unreadableRuns(ofTopic: caller.topic).map(Self.summary)
            page.isEmpty = page.isEmpty && page.unreadable == nil
        }
        return try request.page(.runs, title: "Broadcasts", page)
    }

    /// Returns the silent runs that a page leaves out, since its oldest run.
    private func silent(since oldest: Timestamp?, _ query: RunListQuery) async throws -> RunList.Silent {
        var search = query.search
        (search.hidesSilent, search.kind) = (false, .background)
        search.filter.createdFrom = oldest ?? search.filter.createdFrom
        let found = try await cases.found(search, at: .newest, limit: Self.silentCounted)
        return RunList.Silent(count: found.runs.count, isMore: found.older != nil)
    }

    /// Returns a sentence about the unreadable runs, which names the latest ones.
    private static func summary(_ unreadable: [UnreadableRunResult]) -> String {
        let named = unreadable.suffix(unreadableNamed).reversed()
            .map { "#\($0.run) (\($0.campaign) \($0.occurrence))" }
            .joined(separator: ", ")
        let count = unreadable.count
        let more = count > unreadableNamed ? ", and \(count - unreadableNamed) earlier ones" : ""
        return (count == 1 ? "1 run cannot be read: " : "\(count) runs cannot be read: ") + named + more
    }

    @Sendable private func liveList(_ request: PageRequest) async throws -> Response {
        feed.stream(.list(try RunListQuery(request)), request.context)
    }

    @Sendable private func listState(_ request: PageRequest) async throws -> Response {
        try await answer(.list(try RunListQuery(request)), request)
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        try await page(request, try await run(request))
    }

    @Sendable private func live(_ request: PageRequest) async throws -> Response {
        feed.stream(.run(try await run(request).id), request.context)
    }

    @Sendable private func state(_ request: PageRequest) async throws -> Response {
        try await answer(.run(try await run(request).id), request)
    }

    @Sendable private func deliveries(_ request: PageRequest) async throws -> Response {
        let run = try await run(request)
        let filter = try Self.filter(request)
        let page = try await cases.deliveries.page(
            of: run, filter, cursor: request.query("cursor"), limit: Self.deliveriesShown)
        return try request.page(
            .deliveries, title: "\(run.campaign): \(filter.standing?.rawValue ?? "deliveries")",
            DeliveryPage(run, filter, page))
    }

    /// Returns the deliveries that an address asks for.
    private static func filter(_ request: PageRequest) throws -> DeliveryFilter {
        let state = try request.query("state").map { word in
            try DeliveryStanding(rawValue: word).orThrow(Problem.notFound("\"\(word)\" is not a state of deliveries"))
        }
        return DeliveryFilter(standing: state, reason: request.query("reason"))
    }

    @Sendable private func lines(_ request: PageRequest) async throws -> Response {
        try await DeliveryLines.response(for: try await run(request), cases, try Self.filter(request))
    }

    /// Returns the report that `fanfare report RUN --format html` writes. It has its own stylesheet and no script.
    @Sendable private func report(_ request: PageRequest) async throws -> Response {
        let run = try await run(request)
        let page = ReportPage(
            try await cases.reports.result(of: run, now: cases.now), try await cases.timelines.timeline(of: run),
            waves: try await cases.timelines.waves(of: run).map(WaveBar.init), definition: run.definition,
            people: try await RunPeople(run, cases),
            prunedAt: try await cases.reports.prunedAt(run), madeAt: cases.now,
            version: version)
        return Response(
            status: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
                .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'; sandbox",
                .contentDisposition: "attachment; filename=\"run-\(run.id)-report.html\"",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: try page.html())))
    }

    @Sendable private func reportJSON(_ request: PageRequest) async throws -> Response {
        let run = try await run(request)
        return try .json(
            try await cases.reports.result(of: run, now: cases.now),
            headers: [.contentDisposition: "attachment; filename=\"run-\(run.id)-report.json\""])
    }

    @Sendable private func pause(_ request: PageRequest) async throws -> Response {
        try await change(request) { run, reason, actor, isHeld in
            _ = try await cases.control.pause(run, reason: reason, by: actor, isHeld: isHeld)
        }
    }

    @Sendable private func cancel(_ request: PageRequest) async throws -> Response {
        try await change(request) { run, reason, actor, isHeld in
            _ = try await cases.control.cancel(run, reason: reason, by: actor, isHeld: isHeld)
        }
    }

    @Sendable private func resume(_ request: PageRequest) async throws -> Response {
        try await change(request) { run, reason, actor, isHeld in
            _ = try await cases.control.resume(run, reason: reason, by: actor, isHeld: isHeld)
        }
    }

    @Sendable private func approve(_ request: PageRequest) async throws -> Response {
        try await changeByForm(request) { run, fields, actor in
            _ = try await cases.control.approve(
                run, stage: fields["stage"].flatMap { Int($0) },
                variant: fields["variant"].flatMap { $0.isEmpty ? nil : $0 }, by: actor)
        }
    }

    @Sendable private func recall(_ request: PageRequest) async throws -> Response {
        try await change(request) { run, _, actor, _ in
            // The page offers a second recall only if the notification is on the screens again.
            let isAgain = CorrectRun.mayRecallAgain(after: try await cases.correcting.corrections(of: run))
            _ = try await cases.correcting.start(
                run, CorrectRun.Order(.recall, isAgain: isAgain), by: actor, now: cases.now, sees: { _ in false })
        }
    }

    /// Performs the form's action, and shows the run again. If the action is refused, the page shows the reason. If the
    /// form names the state that the person has seen, the transaction of the change checks it again.
    private func change(
        _ request: PageRequest, _ body: (Run, String?, Actor, Bool) async throws -> Void
    ) async throws -> Response {
        try await changeByForm(request) { run, fields, actor in
            let seen = fields["seen"]
            guard seen == nil || seen == RunResult(run).stateTag else { throw Problem.changedMeanwhile(run) }
            try await body(run, fields["reason"].flatMap { $0.isEmpty ? nil : $0 }, actor, seen != nil)
        }
    }

    /// Performs an action with all fields of the form, which can be read only once.
    private func changeByForm(
        _ request: PageRequest, _ body: (Run, [String: String], Actor) async throws -> Void
    ) async throws -> Response {
        let run = try await run(request)
        let fields = try await request.form()
        do {
            try await body(run, fields, try request.caller.actor)
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            let now = try await cases.runs.run(run.id) ?? run
            return try await page(request, now, problem: problem.detail, status: .init(code: problem.status))
        }
        return PageRequest.seeOther("/runs/\(run.id)")
    }

    private func page(
        _ request: PageRequest, _ run: Run, problem: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let view = try await feed.view(of: run)
        var page = RunPage(
            view, run, try await feed.figures(of: run, isLive: false),
            events: try await cases.audit.results(of: run), people: try await RunPeople(run, cases),
            caller: try request.caller, problem: problem)
        try await page.offerRecall(of: original(of: run), on: run, cases, for: request.caller)
        page.compareAddress = try await before(run).map { "/runs/compare?a=\($0.id)&b=\(run.id)" }
        return try request.page(.run, title: "\(view.campaign) \(view.occurrence)", page, status: status)
    }

    /// Returns the run that sent the notification: the corrected one for a correction of the text. `nil` if no recall
    /// belongs on the page.
    private func original(of run: Run) async throws -> Run? {
        guard let correction = run.definition.correction else { return run }
        guard correction.kind == .replace, run.state.isFinal else { return nil }
        return try await cases.runs.run(correction.run)
    }

    /// Returns the run before of the same campaign, without tests.
    private func before(_ run: Run) async throws -> Run? {
        let search = RunSearch(RunFilter(campaign: run.campaign))
        return try await cases.found(search, at: .before(run.id), limit: 1).runs.first
    }

    private func run(_ request: PageRequest) async throws -> Run {
        try await cases.run(try request.number("run", of: "run"), for: request.caller)
    }

    /// Returns the state that the stream would send now, for browsers that cannot receive the stream.
    private func answer(_ subject: LiveFeed.Subject, _ request: PageRequest) async throws -> Response {
        guard let message = try await feed.message(subject) else { throw Problem.notFound("this run no longer exists") }
        return request.tagged(message.text, message.tag, type: "application/json")
    }
}

extension PageRequest {
    /// Returns a part of a page, which browsers keep until it changes.
    func fragment(_ html: String) -> Response {
        tagged(html, EntityTag.of(html), type: "text/html; charset=utf-8")
    }

    func tagged(_ text: String, _ tag: String, type: String) -> Response {
        var fields: HTTPFields = [.eTag: tag, .cacheControl: "no-cache", .xContentTypeOptions: "nosniff"]
        guard request.headers[.ifNoneMatch] != tag else { return Response(status: .notModified, headers: fields) }
        fields[.contentType] = type
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
