import Campaigns
import Hummingbird
import Model

/// Two runs side by side, and all broadcasts of a month.
struct ComparePages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] { [.get("/runs/compare", .read, compare), .get("/runs/month", .read, month)] }

    @Sendable private func compare(_ request: PageRequest) async throws -> Response {
        let (a, b) = (try await run("a", request), try await run("b", request))
        let page = ComparePage(
            a, try await cases.runningReports.report(of: a)?.figure, b,
            try await cases.runningReports.report(of: b)?.figure)
        return try request.page(.compare, title: "Runs \(a.id) and \(b.id)", page)
    }

    private func run(_ name: String, _ request: PageRequest) async throws -> Run {
        guard let number = request.query(name).flatMap({ Int64($0) }) else {
            throw Problem.invalid(parameter: name, "Choose two runs: /runs/compare?a=1&b=2.")
        }
        return try await cases.run(number, for: request.caller)
    }

    @Sendable private func month(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let month = try request.query("m").map { text in
            try CivilMonth(text).orThrow(Problem.invalid(parameter: "m", "\"m\" must be a month such as 2026-12"))
        }
        let shown = month ?? CivilMonth(of: cases.now)
        let filter = RunFilter(createdFrom: shown.start, createdBefore: shown.next.start)
        let search = RunSearch(filter, topic: caller.topic, hidesSilent: true)
        let found = try await cases.found(search, at: .newest, limit: MonthPage.runsMax)
        var gone: [Int64: Int] = [:]
        for run in found.runs {
            gone[run.id] = try await cases.runningReports.report(of: run)?.figure.devicesGone
        }
        let devices = try await cases.deviceCounts.latest()?.counts
            .filter { caller.sees($0.topic) && $0.status == DeviceStatus.active.rawValue }.reduce(0) { $0 + $1.count }
        let page = MonthPage(shown, found.runs, gone: gone, devices: devices, isCut: found.older != nil)
        return try request.page(.month, title: "Broadcasts of \(shown.text)", page)
    }
}

/// Two runs in columns.
struct ComparePage: Sendable {
    struct Side: Sendable {
        var run: Int64
        var campaign: String
        var occurrence: String
        var excerpt: String?
        var phones: [PhoneScreen]
        var phonesReason: String?
    }

    struct Row: Sendable {
        var name: String
        /// The code that the name stands for. `nil` if the name says all.
        var code: String?
        var a: String
        var b: String
        var differs: Bool
    }

    var a: Side
    var b: Side
    var sides: [Side]
    var counts: [Row]
    var reasons: [Row]
    var hasReasons: Bool
    /// The content: audience, template and values.
    var content: [Row]

    /// - Parameters:
    ///   - first: the report of run `a`; `nil` while it is being counted.
    ///   - second: the report of run `b`.
    init(_ a: Run, _ first: ReportResult?, _ b: Run, _ second: ReportResult?) {
        let (left, right) = (SentContent(a.definition), SentContent(b.definition))
        (self.a, self.b) = (Side(a, left), Side(b, right))
        sides = [self.a, self.b]
        counts = Self.counts(CountsResult(a.counts), CountsResult(b.counts))
        reasons = Self.reasons(first, second)
        hasReasons = !reasons.isEmpty
        let names = (left.facts + right.facts).map(\.name)
        content = names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map { _, name in
            Row(
                name, left.facts.first { $0.name == name }?.value ?? "",
                right.facts.first { $0.name == name }?.value ?? "")
        }
    }

    private static func counts(_ a: CountsResult, _ b: CountsResult) -> [Row] {
        var rows = [Row("audience", a.audience.grouped, b.audience.grouped)]
        for (left, right) in zip(SumStates.all(a), SumStates.all(b)) where left.count + right.count > 0 {
            rows.append(Row(left.name, share(left.count, of: a.audience), share(right.count, of: b.audience)))
        }
        return rows
    }

    private static func share(_ count: Int, of whole: Int) -> String {
        let share = count.share(of: whole)
        return share.isEmpty ? count.grouped : "\(count.grouped) (\(share))"
    }

    /// Returns the reasons of both runs, the most frequent first.
    private static func reasons(_ a: ReportResult?, _ b: ReportResult?) -> [Row] {
        func counted(_ report: ReportResult?) -> [String: Int] {
            let reasons = report.map { $0.rejected + $0.unknown + $0.suppressed } ?? []
            return Dictionary(reasons.map { ($0.reason, $0.count) }, uniquingKeysWith: +)
        }
        let (left, right) = (counted(a), counted(b))
        let all = left.merging(right, uniquingKeysWith: +).sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return all.map { code, _ in
            let summary = ReasonSummary(code: code).summary
            var row = Row(
                summary.isEmpty ? "No reason given" : summary, left[code, default: 0].grouped,
                right[code, default: 0].grouped)
            row.code = summary == code ? nil : code
            return row
        }
    }
}

extension ComparePage.Row {
    fileprivate init(_ name: String, _ a: String, _ b: String) {
        self.init(name: name, a: a, b: b, differs: a != b)
    }
}

extension ComparePage.Side {
    fileprivate init(_ run: Run, _ sent: SentContent) {
        self.init(
            run: run.id, campaign: run.campaign, occurrence: run.occurrence, excerpt: sent.excerpt,
            phones: sent.phones, phonesReason: sent.phonesReason)
    }
}
