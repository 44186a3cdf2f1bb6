import CampaignFiles
import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The pages of segments: the list, the members of one segment, and the count of an expression while a person types it.
struct SegmentPages: Sendable {
    let cases: UseCases

    private static let membersShown = 50

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/segments", .read, list), .post("/segments", .segments, define),
            .get("/segments/count", .plan, count), .get("/segments/{segment}", .read, show),
            .post("/segments/{segment}/members", .segments, change),
            .post("/segments/{segment}/removal", .segments, remove),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        if request.query("format") == "csv" {
            return .table(try ListTable.text(try await SegmentAccess(cases, try request.caller).all()))
        }
        return try await page(request, try await form([:], try request.caller))
    }

    private func page(
        _ request: PageRequest, _ form: SegmentForm, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let caller = try request.caller
        let segments = try await SegmentAccess(cases, caller).all()
        let users = try await users(segments.map(\.name), for: caller)
        return try request.page(
            .segments, title: "Segments",
            SegmentsPage(
                segments: segments.map { SegmentsPage.Line($0, users[$0.name, default: []]) },
                isEmpty: segments.isEmpty, showsUsers: caller.topic == nil, form: form),
            status: status)
    }

    /// Returns what uses each segment. Empty for a visitor confined to one app, who may not learn of other campaigns.
    private func users(_ names: [String], for caller: Caller) async throws -> [String: [String]] {
        caller.topic == nil ? try await cases.users(ofSegments: names) : [:]
    }

    /// - Parameter name: the segment whose form it is, which cannot name itself; `nil` for a new one.
    private func form(
        _ given: [String: String], _ caller: Caller, of name: String? = nil
    ) async throws -> SegmentForm {
        var (fields, choice) = (given, ComposerFields(audience: given["expression", default: "everyone"]))
        if given["c.who"] != nil {
            choice = try ComposerBuilder.posted(given, over: ComposerFields())
            if choice["who"] == "choose" { fields["expression"] = choice.audience }
        }
        let topics = cases.configuration().apps.map(\.topic).filter(caller.sees)
        var form = SegmentForm(
            fields, topics: topics, isOffered: caller.role.may(.segments), mayKeep: caller.topic == nil)
        guard form.isOffered else { return form }
        // A form without values to choose from is better than none.
        let values = try? await cases.audienceValues.latest(given["topic"] ?? topics.first ?? "")
        let segments = (try? await SegmentAccess(cases, caller).all().map(\.name)) ?? []
        form.choices = AudienceChoices(
            values ?? AudienceValuesResult(), segments: segments.filter { $0 != name }, choice)
        form.isChosen = given["expression"] == nil || choice["who"] == "choose"
        return form
    }

    /// Handles the form's two buttons: one counts the expression, the other saves it.
    @Sendable private func define(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        var form = try await self.form(fields, try request.caller)
        if fields["do"] == "count" {
            form.count = try await counted(form.expression, fields, request)
            return try await page(request, form)
        }
        do {
            try request.caller.requireAllApps(for: "segments")
            let name = form.name.trimmingCharacters(in: .whitespaces)
            let chosen = try ComposerBuilder.posted(fields, over: ComposerFields())
            if chosen["who"] == "choose", let country = chosen.unknownCountries.first {
                throw Failure(.invalidData, ComposerFields.summary(unknownCountry: country))
            }
            try await CampaignAccess(cases, request.caller).requireChanging(segment: name)
            _ = try await cases.segments.define(
                name, expression: form.expression, form.condition(for: name, over: fields["over"]),
                by: request.caller.actor, now: cases.now)
            return PageRequest.seeOther("/segments/\(name.inAddress)")
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            form.problem = problem.detail
            if let refusal = error as? SegmentRefusal { form.show(refusal) }
            form.count = CountView(problems: cases.counting.problems(in: form.expression))
            return try await page(request, form, status: .init(code: problem.status))
        }
    }

    /// Returns the count as a fragment of the page. A script requests it while a person types.
    @Sendable private func count(_ request: PageRequest) async throws -> Response {
        let fields = ["topic": request.query("topic") ?? "", "push_type": request.query("push_type") ?? ""]
        let chosen = try ComposerBuilder.posted(request.queryFields, over: ComposerFields())
        let expression = chosen["who"] == "choose" ? chosen.audience : request.query("expression") ?? ""
        let view = try await counted(expression, fields, request)
        return request.fragment(try PageTemplate.count.render(view))
    }

    func counted(
        _ expression: String, _ fields: [String: String], _ request: PageRequest
    ) async throws -> CountView {
        let problems = cases.counting.problems(in: expression)
        guard problems.isEmpty else { return CountView(problems: problems) }
        let topic = fields["topic", default: ""]
        do {
            try request.caller.requireTopic(topic, orNotFound: "no devices of \(topic)")
            try await CampaignAccess(cases, request.caller).requireSegments(cases.counting.segments(in: expression))
            return CountView(
                try await cases.counting.count(
                    expression, topic: topic, pushType: PushType(rawValue: fields["push_type", default: ""]) ?? .alert))
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            return CountView(problem: problem.detail)
        }
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let numbers = (request.query("done") ?? "").split(separator: "-", omittingEmptySubsequences: false).map {
            Int($0) ?? -1
        }
        return try await show(request, problem: nil, done: SegmentChangeResult.summary(of: numbers))
    }

    private func show(
        _ request: PageRequest, problem: Problem?, done: String?, fields: [String: String] = [:]
    ) async throws -> Response {
        let name = request.path("segment")
        let (caller, cursor) = (try request.caller, request.query("cursor"))
        let segment = try await SegmentAccess(cases, caller).segment(name)
        let members = try await cases.segments.members(
            of: name, cursor: cursor, limit: Self.membersShown, now: cases.now)
        let devices = members.devices.filter { caller.sees($0.topic) }
        if request.query("format") == "csv" { return .table(try ListTable.text(devices)) }
        var known = fields
        known["name"] = name
        known["expression"] = segment.expression
        let users = try await users([name], for: caller)[name, default: []]
        known["segment"] = name
        known["opened"] = segment.tag
        let address = "/segments/\(name.inAddress)"
        let page = SegmentPage(
            name: name, isDynamic: segment.expression != nil, expression: segment.expression ?? "",
            members: segment.count.grouped, changed: segment.updatedAt.shownTime,
            form: segment.expression == nil ? nil : try await self.form(known, caller, of: name),
            changeAddress: segment.expression == nil && caller.role.may(.segments) ? address + "/members" : nil,
            removeAddress: caller.topic == nil && caller.role.may(.segments) ? address + "/removal" : nil,
            users: users.isEmpty ? nil : users.joined(separator: ", "), mayReplace: caller.topic == nil,
            given: fields["members", default: ""], problem: problem?.detail,
            done: done,
            devices: devices.map(DevicePages.Line.init), hasDevices: !devices.isEmpty,
            nextAddress: members.next.map { "\(address)?cursor=\($0.inAddress)" },
            tableAddress: address + "?format=csv" + (cursor.map { "&cursor=\($0.inAddress)" } ?? ""))
        return try request.page(.segment, title: name, page, status: .init(code: problem?.status ?? 200))
    }

    /// Adds, removes or replaces members, given a pasted list with one member per line.
    @Sendable private func change(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let name = request.path("segment")
        do {
            let caller = try request.caller
            let mode = fields["mode", default: "add"]
            if mode == "replace" { try caller.requireAllApps(for: "segments") }
            try await CampaignAccess(cases, caller).requireChanging(segment: name)
            var lines = try await cases.segments.change(name, mode: mode, topic: caller.topic)
            try await lines.append(PastedMembers.lines(fields["members", default: ""], of: fields["key", default: ""]))
            let result = try await lines.commit(by: caller.actor, now: cases.now)
            let done = result.numbers.map { "\($0)" }.joined(separator: "-")
            return PageRequest.seeOther("/segments/\(name.inAddress)?done=\(done)")
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            return try await show(request, problem: problem, done: nil, fields: fields)
        }
    }
}

extension SegmentPages {
    @Sendable private func remove(_ request: PageRequest) async throws -> Response {
        let name = request.path("segment")
        do {
            let caller = try request.caller
            try caller.requireAllApps(for: "segments")
            try await CampaignAccess(cases, caller).requireChanging(segment: name)
            try await SegmentNames.found { try await cases.removeSegment(name, by: caller.actor) }
            return PageRequest.seeOther("/segments")
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            guard problem.status != 404 else { throw error }
            return try await show(request, problem: problem, done: nil)
        }
    }
}

/// Converts pasted identifiers to the JSON lines that programs send.
enum PastedMembers {
    static func lines(_ text: String, of key: String) -> [UInt8] {
        let keys = ["installation_id", "user_id", "token"]
        let key = keys.contains(key) ? key : keys[0]
        return text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
            .flatMap { Array("{\"\(key)\": \(JSONEscaping.quoted($0))}\n".utf8) }
    }
}

/// All segments, and the form for a new one.
struct SegmentsPage: Sendable {
    struct Line: Sendable {
        var address: String
        var name: String
        var kind: String
        /// `nil` if the segment has listed members.
        var expression: String?
        var count: String
        var updatedAt: String
        /// What uses the segment, in one line.
        var users: String

        init(_ segment: SegmentResult, _ users: [String]) {
            self.users = users.joined(separator: ", ")
            address = "/segments/\(segment.name.inAddress)"
            name = segment.name
            kind = segment.expression == nil ? "members" : "expression"
            expression = segment.expression
            count = segment.count.grouped
            updatedAt = segment.updatedAt.shownTime
        }
    }

    var segments: [Line]
    var isEmpty: Bool
    /// Whether the list says what uses each segment.
    var showsUsers: Bool
    var form: SegmentForm
}

/// One segment.
struct SegmentPage: Sendable {
    var name: String
    var isDynamic: Bool
    var expression: String
    /// The current number of members.
    var members: String
    var changed: String
    /// The form of a segment with an expression.
    var form: SegmentForm?
    /// The address that changes listed members. `nil` if the segment has an expression or the visitor may not change
    /// it.
    var changeAddress: String?
    /// The address that removes the segment. `nil` if the visitor may not remove it.
    var removeAddress: String?
    /// What uses the segment, in one line. `nil` if nothing does.
    var users: String?
    /// Whether the visitor may replace all members. A visitor confined to one app may not.
    var mayReplace: Bool
    /// The pasted members, shown again after a problem.
    var given: String
    var problem: String?
    /// The result of the last change.
    var done: String?
    var devices: [DevicePages.Line]
    var hasDevices: Bool
    var nextAddress: String?
    var tableAddress: String
}

/// The form with an expression.
struct SegmentForm: Sendable {
    struct Choice: Sendable {
        var word: String
        var isChosen: Bool
    }

    /// The stored segment that prevents saving.
    struct Known: Sendable {
        var address: String
        var label: String
        /// The other user's expression. `nil` if the segment has listed members.
        var theirs: String?
        /// The tag that the button for replacing this expression sends. `nil` if replacing is not offered.
        var tag: String?
    }

    /// Whether the form is shown. Only visitors who may define segments see it.
    var isOffered: Bool
    /// Whether the visitor may save. Segments belong to all apps, so a visitor confined to one app may only count.
    var mayKeep: Bool
    var name: String
    var expression: String
    /// The name of the segment that was opened. Empty if the form is for a new segment.
    var segment: String
    /// The tag that the segment's expression had when the segment was opened.
    var opened: String
    var topics: [Choice]
    var pushTypes: [Choice]
    /// The values to choose from. `nil` if the form is not shown.
    var choices: AudienceChoices?
    /// Whether the form shows the choice and not the expression.
    var isChosen = true
    var problem: String?
    var known: Known?
    var count: CountView?

    /// - Parameters:
    ///   - fields: the input as typed.
    ///   - topics: the topics for which the visitor may count.
    init(_ fields: [String: String], topics known: [String], isOffered: Bool, mayKeep: Bool) {
        self.isOffered = isOffered
        self.mayKeep = mayKeep
        name = fields["name", default: ""]
        expression = fields["expression", default: ""]
        segment = fields["segment", default: ""]
        opened = fields["opened", default: ""]
        topics = known.map { Choice(word: $0, isChosen: $0 == fields["topic"]) }
        let chosen = fields["push_type"] ?? PushType.alert.rawValue
        pushTypes = PushType.allCases.map { Choice(word: $0.rawValue, isChosen: $0.rawValue == chosen) }
    }

    /// Returns the condition for saving. The form replaces only the segment that was opened.
    ///
    /// - Parameter over: the tag of another user's expression. The button that replaces that expression sends it.
    func condition(for name: String, over: String?) -> ManageSegments.Condition {
        segment == name && !opened.isEmpty ? .unchanged(tag: over ?? opened) : .new
    }

    mutating func show(_ refusal: SegmentRefusal) {
        guard let found = refusal.known else {
            // The segment no longer exists, so saving again creates a new one.
            (segment, opened) = ("", "")
            return
        }
        known = Known(
            address: "/segments/\(found.name.inAddress)", label: "Open \(found.name)", theirs: found.expression)
        if case .changedMeanwhile = refusal { known?.tag = found.tag }
    }
}
