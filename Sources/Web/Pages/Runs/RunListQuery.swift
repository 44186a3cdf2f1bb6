import Campaigns
import Foundation
import Hummingbird
import Model

/// The part of the list of runs that an address asks for. Its filters are in the address, so that a view can be shared
/// as a link.
struct RunListQuery: Hashable, Sendable {
    var search: RunSearch
    var position: ListPosition
    /// Whether silent runs are left out because the address asks for nothing in particular.
    var leavesOutSilent = false

    /// The latest runs of one app, or of all.
    static func latest(topic: String?) -> RunListQuery {
        RunListQuery(
            search: RunSearch(RunFilter(), topic: topic, hidesSilent: true), position: .newest, leavesOutSilent: true)
    }

    /// The names of the filters in the address, in the order of the form.
    static let names = ["find", "campaign", "app", "kind", "state", "from", "to", "silent"]
    /// The values of `silent` that hide and show silent runs.
    static let (hidden, shown) = ("hide", "show")
    /// The filters that find silent runs, too.
    private static let finding = ["find", "campaign", "kind", "silent"]
}

extension RunListQuery {
    /// Reads the query of an address. Throws a problem that names a wrong parameter.
    init(_ request: PageRequest) throws {
        let caller = try request.caller
        var filter = RunFilter(campaign: request.query("campaign"))
        filter.states = Set([try Self.word(request, "state", RunState.self)].compactMap(\.self))
        filter.createdFrom = try Self.day(request, "from")
        filter.createdBefore = try Self.day(request, "to").map { $0 + .seconds(86_400) }
        search = RunSearch(
            filter, topic: caller.topic ?? request.query("app"), kind: try Self.word(request, "kind", PushType.self),
            hidesSilent: request.query("silent") == Self.hidden)
        if Self.finding.allSatisfy({ request.query($0) == nil }) {
            (search.hidesSilent, leavesOutSilent) = (true, true)
        }
        position = .newest
        if let text = request.query("find"), !search.look(for: text) {
            throw Problem.invalid(
                parameter: "find", "\"find\" is longer than \(RunSearch.termsBytesMax) bytes; search for fewer words")
        }
        if let older = try PageCursor.position(request.query("older")) { position = .before(older) }
        if let newer = try PageCursor.position(request.query("newer")) { position = .after(newer) }
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ request: PageRequest, _ name: String, _ type: Word.Type
    ) throws -> Word? where Word.RawValue == String {
        guard let text = request.query(name) else { return nil }
        return try Word(rawValue: text).orThrow(
            Problem.invalid(
                parameter: name,
                "\"\(name)\" must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))"))
    }

    private static func day(_ request: PageRequest, _ name: String) throws -> Timestamp? {
        try request.query(name).map { text in
            try WrittenMoment.parse(text).orThrow(
                Problem.invalid(parameter: name, "\"\(name)\" must be a day such as 2026-12-01"))
        }
    }
}

/// The values of the list of runs.
struct RunList: Sendable {
    struct Choice: Sendable {
        var word: String
        var isChosen: Bool
    }

    /// The values of the form with the filters.
    struct Filters: Sendable {
        var find: String
        var campaign: String
        /// Empty if the visitor can see only one app.
        var apps: [Choice]
        var hasApps: Bool
        var kinds: [Choice]
        var states: [Choice]
        var from: String
        var to: String
        var showsSilent: Bool
        /// Whether any filter is set.
        var isSet: Bool
        var problem: String?
    }

    /// Whether something is being sent, or starts soon.
    var isSending = false
    var filters: Filters
    /// A sentence about the silent runs that are left out. `nil` if there are none.
    var silent: String?
    var runs: [RunView]
    /// Whether a run of the page has opens.
    var hasOpens: Bool
    /// The addresses of the live state. `nil` if the list does not update itself.
    var liveAddress: String?
    var stateAddress: String?
    /// The stage that the list was made for. The script reloads the page when it changes.
    var stage: String
    /// Whether there are no runs at all.
    var isEmpty: Bool
    /// Whether no run matches.
    var isUnmatched: Bool
    /// The creation time of the oldest run that a search has read, if it stopped early.
    var searchedTo: PageHTML?
    var olderAddress: String?
    var newerAddress: String?
    /// The runs that wait for a person.
    var halted: [RunView]
    var unsuccessful: [RunView]
    /// The runs that are left out because they cannot be read. `nil` if there are none.
    var unreadable: String?
}

extension RunList {
    /// - Parameters:
    ///   - found: the page of the query; `nil` if the query is wrong.
    ///   - views: the runs of the page.
    init(_ request: PageRequest, apps: [String], _ query: RunListQuery?, _ found: FoundRuns, _ views: [RunView]) {
        let chosen = RunListQuery.names.compactMap { name in request.query(name).map { (name, $0) } }
        filters = Filters(request, apps: apps, isSet: !chosen.isEmpty)
        runs = views
        hasOpens = views.contains { !$0.openedShare.isEmpty }
        stage = views.stage
        let place = ["older", "newer"].compactMap { name in request.query(name).map { (name, $0) } }
        // A search reads too many runs to be repeated each second.
        if let query, !query.search.hasTerms {
            liveAddress = Self.address("/live", chosen + place)
            stateAddress = Self.address("/state", chosen + place)
        }
        let isWhole = chosen.isEmpty && place.isEmpty
        isEmpty = isWhole && views.isEmpty
        isUnmatched = !isWhole && views.isEmpty
        searchedTo = found.stoppedAt.map { PageHTML(time: $0.createdAt.iso8601) }
        olderAddress = found.older.flatMap(PageCursor.text).map { Self.address("/", chosen + [("older", $0)]) }
        newerAddress = found.newer.flatMap(PageCursor.text).map { Self.address("/", chosen + [("newer", $0)]) }
        halted = isWhole ? views.filter { $0.state == RunState.paused.rawValue && !$0.isTest } : []
        unsuccessful = isWhole ? views.unsuccessful : []
    }

    /// The silent runs of a page that leaves them out.
    struct Silent: Sendable {
        var count: Int
        var isMore: Bool
    }

    mutating func add(_ found: Silent) {
        guard found.count > 0 else { return }
        let counted = found.count.counted("silent run is", "silent runs are")
        silent = found.isMore ? "More than \(counted)" : counted
        isEmpty = false
    }

    private static func address(_ path: String, _ values: [(String, String)]) -> String {
        guard !values.isEmpty else { return path }
        return "\(path)?" + values.map { "\($0)=\($1.inAddress)" }.joined(separator: "&")
    }
}

extension RunList.Filters {
    fileprivate init(_ request: PageRequest, apps: [String], isSet: Bool) {
        func choices(_ values: [String], _ name: String) -> [RunList.Choice] {
            values.map { .init(word: $0, isChosen: $0 == request.query(name)) }
        }
        find = request.query("find") ?? ""
        campaign = request.query("campaign") ?? ""
        self.apps = apps.count > 1 ? choices(apps, "app") : []
        hasApps = !self.apps.isEmpty
        kinds = choices(PushType.allCases.map(\.rawValue), "kind")
        states = choices(RunState.allCases.map(\.rawValue), "state")
        from = request.query("from") ?? ""
        to = request.query("to") ?? ""
        showsSilent = request.query("silent") == RunListQuery.shown
        self.isSet = isSet
    }
}

extension PageRequest {
    /// The languages that the visitor's browser asks for, the first ones first.
    var languages: [LocaleTag] {
        (request.headers[.acceptLanguage] ?? "").prefix(200).split(separator: ",").prefix(5).compactMap { part in
            LocaleTag(part.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces))
        }
    }
}
