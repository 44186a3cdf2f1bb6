package import Campaigns
import Foundation
import Model

/// The share of sent pushes that APNs accepted, with its confidence interval.
///
/// The interval is Wilson's at 95 %. It stays within 0 to 1, and is valid for small groups and for shares near 0 or 1.
/// The usual interval (share ± 1.96 standard errors) has no width at 0 or 1.
package struct AcceptedShare: Hashable, Sendable {
    package let accepted: Int
    /// The accepted, rejected and unknown deliveries. Suppressed deliveries were never sent, and pending ones are not
    /// sent yet.
    package let sent: Int

    package init(accepted: Int, sent: Int) {
        self.accepted = accepted
        self.sent = sent
    }

    package init(_ counts: CountsResult) {
        self.init(accepted: counts.accepted, sent: counts.accepted + counts.rejected + counts.unknown)
    }

    /// `nil` if nothing was sent.
    package var share: Double? { proportion.rate }

    /// `nil` if nothing was sent.
    package var interval: ClosedRange<Double>? {
        sent > 0 ? proportion.interval() : nil
    }

    private var proportion: Proportion { Proportion(accepted, of: sent) }
}

extension Chart {
    /// Returns a chart of the accepted share of each group, with its interval. If two intervals overlap, the difference
    /// may be chance.
    ///
    /// - Parameter by: the word that names the groups in the title, such as `locale` or `variant`.
    package static func shares(_ slices: [ReportResult.Slice], by word: String, id: String? = nil) -> Chart {
        ShareChart(id: id ?? "\(word)-shares", word: word, groups: slices.map { ($0.name, AcceptedShare($0.counts)) })
            .chart
    }
}

private struct ShareChart {
    private static let axisHeight = 30
    private static let inset = 6.0

    let id: String
    let word: String
    let groups: [(name: String, share: AcceptedShare)]

    var chart: Chart {
        let table = ChartTable(
            columns: [word, "sent", "accepted", "share", "95 % from", "to"],
            rows: groups.map { name, share in
                [
                    name, share.sent.grouped, share.accepted.grouped, Self.text(share.share),
                    Self.text(share.interval?.lowerBound), Self.text(share.interval?.upperBound),
                ]
            })
        let intervals = groups.prefix(BarRow.shownMax).compactMap(\.share.interval)
        guard let low = intervals.map(\.lowerBound).min(), let high = intervals.map(\.upperBound).max() else {
            return Chart(
                id: id, title: title, summary: "Nothing has been sent yet.", height: 0, drawing: "", legend: [],
                table: table
            )
        }
        let ticks = Ticks.shares(from: low, to: high)
        let rows = groups.map { row($0.name, $0.share, ticks) }
        let notes = [
            "The accepted share of the pushes sent; the line is the 95 % interval.",
            (ticks.first ?? 0) > 0 ? "The axis does not begin at zero." : nil, BarRow.note(rows),
        ]
        return Chart(
            id: id, title: title, summary: summary, height: BarRow.height(rows) + Self.axisHeight,
            drawing: axis(ticks, height: BarRow.height(rows)) + BarRow.drawing(rows), legend: [],
            note: notes.compactMap(\.self).joined(separator: " "), table: table)
    }

    private var title: String { "Accepted share by \(word)" }

    private var summary: String {
        groups.prefix(6).map { "\($0.name) \($0.share.share.map { Self.text($0) } ?? "none sent")" }
            .joined(separator: ", ") + (groups.count > 6 ? " and \(groups.count - 6) more." : ".")
    }

    private static func text(_ share: Double?) -> String { share.map { ShortNumber.percent($0, step: 0.0001) } ?? "" }

    private func row(_ name: String, _ share: AcceptedShare, _ ticks: [Double]) -> BarRow {
        guard let value = share.share, let interval = share.interval else {
            return BarRow(name: name, value: "none sent", drawing: { _ in "" })
        }
        let (from, to) = (x(interval.lowerBound, ticks), x(interval.upperBound, ticks))
        return BarRow(name: name, value: "\(Self.text(value)) of \(share.sent.grouped)") { y in
            "<path class=\"whisker\" d=\"M\(unit(from)) \(y + 5)H\(unit(to))M\(unit(from)) \(y + 1)v8M\(unit(to)) \(y + 1)v8\"/>"
                + "<circle class=\"fill accepted\" cx=\"\(unit(x(value, ticks)))\" cy=\"\(y + 5)\" r=\"5\"/>"
        }
    }

    private func x(_ share: Double, _ ticks: [Double]) -> Double {
        let (first, last) = (ticks.first ?? 0, ticks.last ?? 1)
        return Self.inset + (share - first) / (last - first) * (Double(Chart.width) - 2 * Self.inset)
    }

    private func axis(_ ticks: [Double], height: Int) -> String {
        let step = ticks.count > 1 ? ticks[1] - ticks[0] : 1
        let lines = ticks.map { "M\(unit(x($0, ticks))) 0V\(height + 4)" }.joined()
        let labels = ticks.enumerated().map { index, tick in
            let anchor = index == 0 ? "start" : index == ticks.count - 1 ? "end" : "middle"
            let at = index == 0 ? 0 : index == ticks.count - 1 ? Double(Chart.width) : x(tick, ticks)
            return "<text x=\"\(unit(at))\" y=\"\(height + 23)\" text-anchor=\"\(anchor)\">"
                + "\(ShortNumber.percent(tick, step: step))</text>"
        }
        return "<path class=\"grid\" d=\"\(lines)\"/>" + labels.joined()
    }
}
