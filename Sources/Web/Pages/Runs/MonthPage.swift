import Campaigns
import Foundation
import Model

/// The broadcasts of a month: sums, a chart of the days, and a row for each.
struct MonthPage: Sendable {
    struct Row: Sendable {
        var run: Int64
        var campaign: String
        var occurrence: String
        var excerpt: String?
        var at: PageHTML
        var audience: String
        var accepted: String
        var share: String
        /// The tokens that the run removed. Empty while they are being counted.
        var gone: String
    }

    struct Fact: Sendable {
        var name: String
        var value: String
    }

    /// The maximum number of broadcasts of a month.
    static let runsMax = 200
    private static let excerptShown = 60

    var month: String
    var before: String
    var after: String
    var facts: [Fact]
    /// The accepted notifications of each day, in HTML.
    var charts: String
    var rows: [Row]
    var isEmpty: Bool
    /// Whether only the latest ``runsMax`` broadcasts are counted.
    var isCut: Bool

    /// - Parameters:
    ///   - gone: the tokens that each run removed, if they are counted.
    ///   - devices: the active devices now. `nil` while they are being counted.
    init(_ month: CivilMonth, _ runs: [Run], gone: [Int64: Int], devices: Int?, isCut: Bool) {
        self.month = month.text
        before = "/runs/month?m=\(month.previous.text)"
        after = "/runs/month?m=\(month.next.text)"
        self.isCut = isCut
        let sent = runs.filter(\.isSent)
        let corrections = sent.count { $0.definition.correction != nil }
        let removed = gone.values.reduce(0, +).grouped
        // A correction replaces a notification, and is none of its own.
        let accepted = runs.reduce(0) { $0 + ($1.definition.correction == nil ? $1.counts.accepted : 0) }
        facts = [
            Fact(name: "Broadcasts", value: (sent.count - corrections).grouped),
            Fact(name: "Accepted notifications", value: accepted.grouped),
            Fact(name: "Largest audience", value: (runs.map(\.counts.audience).max() ?? 0).grouped),
            Fact(
                name: "Tokens removed", value: sent.allSatisfy { gone[$0.id] != nil } ? removed : "at least \(removed)"),
        ]
        if corrections > 0 { facts.append(Fact(name: "Corrections of broadcasts", value: corrections.grouped)) }
        if sent.count < runs.count {
            facts.append(Fact(name: "Not sent", value: (runs.count - sent.count).grouped))
        }
        if let devices, devices > 0 {
            let tenths = (accepted * 10 + devices / 2) / devices
            facts.append(Fact(name: "Per active device, on average", value: "\(tenths / 10).\(tenths % 10)"))
        }
        charts = Chart.days(of: month, runs).html
        rows = runs.map { run in
            Row(
                run: run.id, campaign: run.campaign, occurrence: run.occurrence,
                excerpt: run.definition.excerpt(in: [])?.cut(toWidth: Self.excerptShown),
                at: PageHTML(time: run.createdAt.iso8601), audience: run.counts.audience.grouped,
                accepted: run.counts.accepted.grouped,
                share: run.counts.accepted.share(of: run.counts.audience), gone: gone[run.id].map(\.grouped) ?? "")
        }
        isEmpty = rows.isEmpty
    }
}

extension Run {
    /// Whether the run has sent something, or may still.
    fileprivate var isSent: Bool {
        !state.isFinal || counts.accepted + counts.rejected + counts.unknown > 0
    }
}

/// A month of the calendar, in UTC.
struct CivilMonth: Hashable, Sendable {
    private var year: Int64
    /// 1 to 12.
    private var month: Int64

    /// Parses `2026-12`.
    init?(_ text: String) {
        guard text.utf8.count == 7, let day = WallTime("\(text)-01")?.day else { return nil }
        self.init(day)
    }

    init(of moment: Timestamp) {
        self.init(TimeZone.gmt.wall(at: moment).day)
    }

    private init(_ day: CivilDay) { (year, month, _) = day.date }

    var text: String { String(WallTime(first).description.prefix(7)) }
    var next: CivilMonth { CivilMonth(CivilDay(number: first.number + 31)) }
    var previous: CivilMonth { CivilMonth(CivilDay(number: first.number - 1)) }
    var start: Timestamp { Timestamp(milliseconds: first.number * 86_400_000) }
    var days: Int { Int(next.first.number - first.number) }

    private var first: CivilDay { CivilDay(year: year, month: month, day: 1) }

    /// Returns the index of the moment's day in the month, from 0.
    func day(of moment: Timestamp) -> Int { Int(TimeZone.gmt.wall(at: moment).day.number - first.number) }
}

extension Chart {
    private static let daysHeight = 150

    /// Returns the accepted notifications of each day of a month as bars.
    fileprivate static func days(of month: CivilMonth, _ runs: [Run]) -> Chart {
        var counts = [Int](repeating: 0, count: month.days)
        for run in runs where run.definition.correction == nil {
            let day = month.day(of: run.createdAt)
            if counts.indices.contains(day) { counts[day] += run.counts.accepted }
        }
        let most = counts.max() ?? 0
        let step = Double(width) / Double(counts.count)
        let bars = counts.enumerated().filter { $1 > 0 }.map { day, count in
            let size = max(Double(count) / Double(max(1, most)) * Double(daysHeight - 25), 2)
            return
                "<rect class=\"fill accepted\" x=\"\(unit(Double(day) * step + 1))\" y=\"\(unit(Double(daysHeight - 25) - size))\""
                + " width=\"\(unit(step - 2))\" height=\"\(unit(size))\"><title>\(day + 1): \(count.grouped)</title></rect>"
        }.joined()
        let labels = stride(from: 0, to: counts.count, by: 5).map { day in
            "<text x=\"\(unit(Double(day) * step))\" y=\"\(daysHeight - 4)\">\(day + 1)</text>"
        }.joined()
        return Chart(
            id: "days", title: "Accepted notifications by day",
            summary: most == 0 ? "Nothing was accepted in this month." : "At most \(most.grouped) on one day.",
            height: daysHeight, drawing: most == 0 ? "" : bars + labels, legend: [], note: "Days in UTC.",
            table: ChartTable(
                columns: ["day", "accepted"], rows: counts.enumerated().map { ["\($0 + 1)", $1.grouped] }))
    }
}
