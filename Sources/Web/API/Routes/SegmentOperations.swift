import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The operations for segments: the list, the members, and the devices that an expression selects.
struct SegmentOperations: Sendable {
    let cases: UseCases

    /// The definition of a segment.
    struct Definition: Codable, Sendable {
        /// An audience expression.
        var expression: String
    }

    /// An expression to count.
    struct Question: Codable, Sendable {
        var expression: String
        /// The topic of the app.
        var topic: String
        /// The push type. By default, `alert`.
        var pushType: String?
    }

    private static let name = Operation.Parameter.path("segment", "The name of a segment.")

    var all: [Operation] { [list, read, members, define, count, change, remove].readingTexts }

    private var list: Operation {
        Operation(
            method: .get, path: "/segments", id: "listSegments", subject: "Segments",
            about:
                "All segments by name. Those with an expression show the count from when they were defined; read one for "
                + "its current count. A token for one app sees and counts only devices of that app.",
            permission: .read, parameters: [.format],
            answers: [.init(.ok, "The segments.", .json(ListPage<SegmentResult>.self), orTable: true)],
            problems: [.unprocessableContent], handle: list)
    }

    private var read: Operation {
        Operation(
            method: .get, path: "/segments/{segment}", id: "getSegment", subject: "Segments",
            about:
                "A segment, counted now, as `fanfare segments list --json` prints it. If it has an expression, its "
                + "ETag changes with the expression.", permission: .read,
            parameters: [Self.name], answers: [.init(.ok, "The segment.", .json(SegmentResult.self))],
            problems: [.notFound], handle: read)
    }

    private var members: Operation {
        Operation(
            method: .get, path: "/segments/{segment}/members", id: "listSegmentMembers", subject: "Segments",
            about:
                "The devices of a segment, in order of their numbers. With an expression, a page may have fewer than "
                + "`limit`, or none, and still a `next`.",
            permission: .read, parameters: [Self.name, .limit, .cursor, .format],
            answers: [.init(.ok, "Devices.", .json(ListPage<DeviceResult>.self), orTable: true)],
            problems: [.notFound, .unprocessableContent], handle: members)
    }

    private var define: Operation {
        Operation(
            method: .put, path: "/segments/{segment}", id: "defineSegment", subject: "Segments",
            about:
                "Names an audience expression, or replaces the expression of that name. With `If-Match` another user's "
                + "expression is not overwritten by accident.",
            permission: .segments,
            parameters: [
                Self.name,
                .header("If-Match", "The ETag of the expression to replace; 412 if it has changed."),
            ], body: .json(Definition.self),
            answers: [.init(.ok, "The segment, counted now.", .json(SegmentResult.self))],
            problems: [
                .conflict, .preconditionFailed, .contentTooLarge, .unprocessableContent, .serviceUnavailable,
            ], handle: define)
    }

    private var count: Operation {
        Operation(
            method: .post, path: "/segments/count", id: "countExpression", subject: "Segments",
            about:
                "The number of an app's devices that an expression selects now, and that a push would reach.",
            permission: .plan, body: .json(Question.self),
            answers: [.init(.ok, "The counts.", .json(ExpressionCountResult.self))],
            problems: [.notFound, .contentTooLarge, .unprocessableContent, .serviceUnavailable], handle: count)
    }

    private var change: Operation {
        Operation(
            method: .post, path: "/segments/{segment}/members", id: "changeSegmentMembers", subject: "Segments",
            about:
                "Adds or removes members, or replaces them all with those given: one JSON object per line, with an "
                + "`installation_id`, a `user_id` or a `token`. Atomic; unusable lines are counted "
                + "and left out.",
            permission: .segments,
            parameters: [
                Self.name,
                .query("mode", "The change of the members (default: `add`).", allowed: ManageSegments.modes),
                .query("topic", "Only devices of this topic."),
            ],
            body: .jsonLines(Member.self),
            answers: [.init(.ok, "What was changed.", .json(SegmentChangeResult.self))],
            problems: [.conflict, .unprocessableContent, .serviceUnavailable], handle: change)
    }

    private var remove: Operation {
        Operation(
            method: .delete, path: "/segments/{segment}", id: "removeSegment", subject: "Segments",
            about:
                "Removes a segment; its devices stay. Refused while a campaign, the seeds of a stage, another segment, "
                + "`test_devices` or a run that has not chosen its devices yet uses it; the response lists the uses.",
            permission: .segments, parameters: [Self.name],
            answers: [.init(.ok, "What was removed.", .json(SegmentResult.self))],
            problems: [.notFound, .conflict, .serviceUnavailable], handle: remove)
    }

    /// One line of a list of members. Exactly one field is set.
    struct Member: Codable, Sendable {
        var installationId: String?
        var userId: String?
        var token: String?
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        try request.list(try await SegmentAccess(cases, request.caller).all(), next: nil)
    }

    @Sendable private func read(_ request: APIRequest) async throws -> Response {
        let segment = try await SegmentAccess(cases, request.caller).segment(request.path("segment"))
        return try .json(segment, headers: Self.tag(segment))
    }

    private static func tag(_ segment: SegmentResult) -> HTTPFields { segment.tag.map { [.eTag: "\"\($0)\""] } ?? [:] }

    @Sendable private func members(_ request: APIRequest) async throws -> Response {
        let name = request.path("segment")
        let limit = try request.integer("limit", in: 1...500, otherwise: 50)
        if request.caller.topic != nil { _ = try await SegmentAccess(cases, request.caller).segment(name) }
        let page = try await SegmentNames.found {
            try await cases.segments.members(of: name, cursor: request.text("cursor"), limit: limit, now: cases.now)
        }
        return try request.list(page.devices.filter { request.caller.sees($0.topic) }, next: page.next)
    }

    @Sendable private func define(_ request: APIRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "segments")
        let definition = try await request.body(Definition.self)
        try requireRight(definition.expression)
        try await CampaignAccess(cases, request.caller).requireChanging(segment: request.path("segment"))
        let summary = try await cases.segments.define(
            request.path("segment"), expression: definition.expression, Self.condition(request.request),
            by: request.caller.actor, now: cases.now)
        let segment = SegmentResult(summary)
        return try .json(segment, headers: Self.tag(segment))
    }

    /// Returns the condition, or `nil` if there is none. `*` names no version that the caller has read, so it counts as
    /// no condition.
    private static func condition(_ request: Request) -> ManageSegments.Condition? {
        guard let tag = request.headers[.ifMatch]?.trimmingCharacters(in: .whitespaces), tag != "*" else { return nil }
        return .unchanged(tag: tag.replacingSign("\"", with: ""))
    }

    @Sendable private func count(_ request: APIRequest) async throws -> Response {
        let question = try await request.body(Question.self)
        try request.caller.requireTopic(question.topic, orNotFound: "no devices of \(question.topic)")
        try requireRight(question.expression)
        guard let pushType = PushType(rawValue: question.pushType ?? PushType.alert.rawValue) else {
            let types = PushType.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem.invalid([.init(pointer: "/push_type", detail: "\"push_type\" must be one of \(types)")])
        }
        try await CampaignAccess(cases, request.caller).requireSegments(
            cases.counting.segments(in: question.expression))
        return try .json(
            try await cases.counting.count(question.expression, topic: question.topic, pushType: pushType))
    }

    @Sendable private func change(_ request: APIRequest) async throws -> Response {
        try request.requireType("application/x-ndjson")
        let mode = try request.word("mode", among: ManageSegments.modes) ?? "add"
        let topic = try Self.topic(request.text("topic"), request.caller, mode)
        let name = request.path("segment")
        try await CampaignAccess(cases, request.caller).requireChanging(segment: name)
        var members = try await cases.segments.change(name, mode: mode, topic: topic)
        var body = CountedBody(request)
        while let piece = try await body.next() { try await members.append(piece) }
        return try .json(try await members.commit(by: request.caller.actor, now: cases.now))
    }

    @Sendable private func remove(_ request: APIRequest) async throws -> Response {
        let name = request.path("segment")
        try request.caller.requireAllApps(for: "segments")
        try await CampaignAccess(cases, request.caller).requireChanging(segment: name)
        let removed = try await SegmentNames.found { try await cases.segments.summary(name, now: cases.now) }
        try await SegmentNames.found { try await cases.removeSegment(name, by: request.caller.actor) }
        return try .json(removed)
    }

    private func requireRight(_ expression: String) throws {
        let problems = cases.counting.problems(in: expression)
        guard problems.isEmpty else {
            throw Problem.invalid(problems.map { .init(pointer: "/expression", detail: $0.text) })
        }
    }

    private static func topic(_ given: String?, _ caller: Caller, _ mode: String) throws -> String? {
        guard let own = caller.topic else { return given }
        if mode == "replace" { try caller.requireAllApps(for: "segments") }
        if let given { try caller.requireTopic(given, orNotFound: "no devices of \(given)") }
        return given ?? own
    }
}

/// The caller's access to segments. A caller confined to one app sees only segments with devices of that app, and only
/// these devices are counted.
struct SegmentAccess: Sendable {
    private let cases: UseCases
    private let caller: Caller

    init(_ cases: UseCases, _ caller: Caller) {
        self.cases = cases
        self.caller = caller
    }

    func all() async throws -> [SegmentResult] {
        let all = try await cases.segments.list(now: nil)
        guard caller.topic != nil, !all.isEmpty else { return all }
        let topics = try await topics()
        var seen: [SegmentResult] = []
        for segment in all {
            if let own = try await visible(segment, topics) { seen.append(own) }
        }
        return seen
    }

    /// Returns one segment with its current count.
    func segment(_ name: String) async throws -> SegmentResult {
        guard caller.topic != nil else {
            return try await SegmentNames.found { try await cases.segments.summary(name, now: cases.now) }
        }
        let segment = try await cases.segments.list(now: nil).first { $0.name == name }
        if let segment, let own = try await visible(segment, topics()) { return own }
        throw Problem.notFound("no segment \"\(name)\"; import it first")
    }

    /// Returns the topics of the caller's app that have devices. Counting for a topic without devices would read all
    /// devices.
    private func topics() async throws -> Set<String> {
        (caller.topic?.topics ?? []).intersection(try await cases.devices.topics())
    }

    private func visible(_ segment: SegmentResult, _ topics: Set<String>) async throws -> SegmentResult? {
        var own = segment
        own.count = 0
        for topic in topics {
            do {
                own.count += try await cases.counting.devices(inSegment: segment.name, topic: topic)
            } catch  where ManageSegments.missing(error) != nil {
                // The expression names a segment that no longer exists.
                return nil
            }
        }
        return own.count > 0 ? own : nil
    }
}

/// Reports a missing segment as "not found", because the address of the request names it.
enum SegmentNames {
    static func found<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch {
            guard let missing = ManageSegments.missing(error) else { throw error }
            throw Problem.notFound(missing)
        }
    }
}

/// Reads the pieces of a request's body. If reading ends without an error, the body is complete, and its caller still
/// has the rights of the request's start.
struct CountedBody {
    private let request: APIRequest
    private var pieces: RequestBody.AsyncIterator

    init(_ request: APIRequest) {
        self.request = request
        pieces = request.request.body.makeAsyncIterator()
    }

    mutating func next() async throws -> [UInt8]? {
        let piece = try await pieces.next()
        // If the task is cancelled, the iterator ends without an error.
        try Task.checkCancellation()
        guard let piece else {
            try await request.requireStill()
            return nil
        }
        return Array(piece.readableBytesView)
    }
}
