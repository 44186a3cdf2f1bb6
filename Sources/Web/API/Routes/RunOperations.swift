import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The operations that read runs and their results, and that change runs.
struct RunOperations: Sendable {
    /// The reason for a change, for the audit log.
    struct Change: Codable, Sendable {
        var reason: String?
    }

    /// The stage that the caller has seen.
    struct StageApproval: Codable, Sendable {
        /// The number of the stage in the run, from 1.
        var stage: Int
        /// The variant to send to the rest, if the run waits for this choice.
        var variant: String?
    }

    let cases: UseCases

    private static let run = Operation.Parameter.path("run", "The number of a run.", .integer)
    private static let ifMatch = Operation.Parameter(
        name: "If-Match", place: .header, about: "The `ETag` of the run as last read; 412 if its state has changed.")
    private static let changeProblems: [HTTPResponse.Status] = [.notFound, .preconditionFailed, .conflict]

    var all: [Operation] { reading + changing }

    private var reading: [Operation] {
        [
            Operation(
                method: .get, path: "/runs", id: "listRuns", subject: "Runs",
                about:
                    "Runs, newest first. A page may be shorter than requested and still have a next page. The first "
                    + "page names the runs that cannot be read, which are left out.",
                permission: .read,
                parameters: [
                    .query("campaign", "Only runs of this campaign."),
                    .query("state", "Only runs in this state.", allowed: RunState.allCases.map(\.rawValue)),
                    .query("since", "Created at or after this moment, ISO 8601."),
                    .query("until", "Created before this moment, ISO 8601."),
                    .query("app", "Only runs of this app, named by its bundle id."),
                    .query("kind", "Only runs of this push type.", allowed: PushType.allCases.map(\.rawValue)),
                    .query("silent", "`false`: leave out runs of background pushes.", allowed: ["true", "false"]),
                    .query("find", "Only runs with all these words in their names, texts or variables."),
                    .query("tests", "`true`: include tests sent to one device.", allowed: ["true", "false"]),
                    .cursor, .limit,
                ], answers: [.init(.ok, "A page of runs.", .json(RunPageResult.self))], handle: list),
            Operation(
                method: .get, path: "/runs/{run}/timeline", id: "getTimeline", subject: "Runs",
                about: "The outcomes of a run's pushes over time, per 10 s or a multiple of it.", permission: .read,
                parameters: [Self.run], answers: [.init(.ok, "The timeline.", .json(TimelineResult.self))],
                problems: [.notFound], handle: timeline),
            Operation(
                method: .get, path: "/runs/{run}/deliveries", id: "listDeliveries", subject: "Runs",
                about:
                    "Deliveries of a run, ordered by device, with their outcomes. A page may be shorter than requested"
                    + ", or empty, and still have a next page.",
                permission: .read,
                parameters: [
                    Self.run,
                    .query("state", "The state of the deliveries.", allowed: DeliveryStanding.allCases.map(\.rawValue)),
                    .query("reason", "The reason, as APNs or Fanfare gives it."), .cursor, .limit,
                ], answers: [.init(.ok, "A page of deliveries.", .json(DeliveryPageResult.self))],
                problems: [.notFound], handle: deliveries),
            Operation(
                method: .get, path: "/runs/{run}/deliveries.csv", id: "exportDeliveries", subject: "Runs",
                about:
                    "One line for each delivery, as `fanfare report RUN --format csv` prints it; tokens by their last "
                    + "8 characters.",
                permission: .read, parameters: [Self.run],
                answers: [.init(.ok, "The deliveries, a heading first.", .text("text/csv"))],
                problems: [.notFound], handle: export),
            Operation(
                method: .get, path: "/runs/{run}", id: "getRun", subject: "Runs",
                about:
                    "A run as it is now, as `fanfare status RUN --json` prints it. Its `ETag` changes with its state.",
                permission: .read, parameters: [Self.run], answers: [.init(.ok, "The run.", .json(RunResult.self))],
                problems: [.notFound], handle: get),
            Operation(
                method: .get, path: "/runs/{run}/report", id: "getReport", subject: "Runs",
                about: "The report of a run, as `fanfare report RUN --format json` prints it.", permission: .read,
                parameters: [Self.run], answers: [.init(.ok, "The report.", .json(ReportResult.self))],
                problems: [.notFound], handle: report),
            Operation(
                method: .get, path: "/runs/{run}/sums", id: "checkSums", subject: "Runs",
                about: "Recounts every delivery, as `fanfare report RUN --check` does. Reads the whole run.",
                permission: .read, parameters: [Self.run],
                answers: [.init(.ok, "The counts, and whether they balance.", .json(SumCheckResult.self))],
                problems: [.notFound], handle: sums),
        ]
    }

    private var changing: [Operation] {
        [
            Operation(
                method: .post, path: "/runs/{run}/pause", id: "pauseRun", subject: "Runs",
                about: "Pauses a run until it is resumed. Responds when its sender has confirmed, or after 15 s.",
                permission: .halt, parameters: [Self.run, Self.ifMatch], body: .json(Change.self), needsBody: false,
                answers: [.init(.ok, "The run.", .json(RunResult.self))], problems: Self.changeProblems,
                handle: { request in
                    try await change(request) { try await cases.control.pause($0, reason: $1, by: $2, isHeld: $3).run }
                }),
            Operation(
                method: .post, path: "/runs/{run}/resume", id: "resumeRun", subject: "Runs",
                about: "Resumes a paused run; the daemon continues it.", permission: .run,
                parameters: [Self.run, Self.ifMatch], body: .json(Change.self), needsBody: false,
                answers: [.init(.ok, "The run.", .json(RunResult.self))], problems: Self.changeProblems,
                handle: { request in
                    try await change(request) { try await cases.control.resume($0, reason: $1, by: $2, isHeld: $3).run }
                }),
            Operation(
                method: .post, path: "/runs/{run}/approve", id: "approveStage", subject: "Runs",
                about:
                    "Starts the stage that a paused run waits for; the daemon sends it. The body names the stage.",
                permission: .approve,
                parameters: [Self.run, Self.ifMatch], body: .json(StageApproval.self),
                answers: [.init(.ok, "The run.", .json(RunResult.self))],
                problems: Self.changeProblems,
                readsTexts: true,
                handle: approve),
            Operation(
                method: .post, path: "/runs/{run}/cancel", id: "cancelRun", subject: "Runs",
                about: "Cancels a run permanently: deliveries not sent yet are suppressed.", permission: .halt,
                parameters: [Self.run, Self.ifMatch], body: .json(Change.self), needsBody: false,
                answers: [.init(.ok, "The run.", .json(RunResult.self))], problems: Self.changeProblems,
                handle: { request in
                    try await change(request) { try await cases.control.cancel($0, reason: $1, by: $2, isHeld: $3).run }
                }),
        ]
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        let filter = RunFilter(
            campaign: request.text("campaign"),
            states: Set([try request.word("state", RunState.self)].compactMap(\.self)),
            createdFrom: try request.moment("since"), createdBefore: try request.moment("until"),
            includesTests: try request.boolean("tests"))
        let (topic, cursor) = (request.caller.topic, request.text("cursor"))
        var search = RunSearch(
            filter, topic: topic ?? request.text("app"), kind: try request.word("kind", PushType.self),
            hidesSilent: try request.word("silent", among: ["true", "false"]) == "false")
        guard search.look(for: request.text("find") ?? "") else {
            throw Problem.invalid(
                parameter: "find", "\"find\" is longer than \(RunSearch.termsBytesMax) bytes; search for fewer words")
        }
        var page = try await cases.runs(search, cursor: cursor, limit: try request.limit())
        if cursor == nil { page.unreadable = try await cases.unreadableRuns(filter, ofTopic: topic) }
        return try .json(page)
    }

    @Sendable private func timeline(_ request: APIRequest) async throws -> Response {
        try .json(try await cases.timelines.timeline(of: try await run(request)))
    }

    @Sendable private func deliveries(_ request: APIRequest) async throws -> Response {
        let filter = DeliveryFilter(
            standing: try request.word("state", DeliveryStanding.self), reason: request.text("reason"))
        return try .json(
            try await cases.deliveries.page(
                of: try await run(request), filter, cursor: request.text("cursor"), limit: try request.limit()))
    }

    @Sendable private func export(_ request: APIRequest) async throws -> Response {
        try await DeliveryLines.response(for: try await run(request), cases)
    }

    @Sendable private func get(_ request: APIRequest) async throws -> Response {
        let result = try await cases.runs.inDetail(try await run(request)).result
        return try .json(result, headers: [.eTag: Self.tag(result)])
    }

    @Sendable private func report(_ request: APIRequest) async throws -> Response {
        try .json(try await cases.reports.result(of: try await run(request), now: cases.now))
    }

    @Sendable private func sums(_ request: APIRequest) async throws -> Response {
        let run = try await run(request)
        let check = try await request.whileClientStays { try await cases.reports.check(run) }
        return try .json(SumCheckResult(run, check))
    }

    @Sendable private func approve(_ request: APIRequest) async throws -> Response {
        let run = try await run(request)
        try requireSeen(run, request)
        let body = try await request.body(StageApproval.self)
        return try answer(
            try await cases.control.approve(
                run, stage: body.stage, variant: body.variant, by: request.caller.actor
            ).run)
    }

    /// Performs a change. If the request names the state that the caller has seen, the transaction of the change checks
    /// it again.
    private func change(
        _ request: APIRequest, _ body: (Run, String?, Actor, Bool) async throws -> Run
    ) async throws -> Response {
        let run = try await run(request)
        let isHeld = try requireSeen(run, request)
        let change = try await request.optionalBody(Change.self) ?? Change()
        return try answer(try await body(run, change.reason, request.caller.actor, isHeld))
    }

    /// Throws 412 if `If-Match` names another state of the run than the current one. Returns whether it names a state.
    @discardableResult private func requireSeen(_ run: Run, _ request: APIRequest) throws -> Bool {
        guard let seen = request.request.headers[.ifMatch], seen != "*" else { return false }
        guard seen == Self.tag(RunResult(run)) else { throw Problem.changedMeanwhile(run) }
        return true
    }

    private func answer(_ changed: Run) throws -> Response {
        let result = cases.runs.held(changed).result
        return try .json(result, headers: [.eTag: Self.tag(result)])
    }

    private func run(_ request: APIRequest) async throws -> Run {
        try await cases.run(try request.number("run", of: "run"), for: request.caller)
    }

    /// Returns the tag of the run's state, for `If-Match`. The tag does not depend on the run's counts.
    private static func tag(_ result: RunResult) -> String { "\"\(result.stateTag)\"" }
}

extension RunResult {
    /// Identifies the state that a person has seen. It does not depend on the run's counts.
    var stateTag: String { EntityTag.word(Array(stateSummary.utf8)) }
}

extension Problem {
    /// The run no longer has the state that the caller has seen.
    static func changedMeanwhile(_ run: Run) -> Problem {
        Problem(
            412, "changed_meanwhile", "Changed meanwhile",
            "run \(run.id) is now \(RunResult(run).stateSummary); reload it before you change it")
    }
}
