package import Campaigns
import Model

/// The states of a run's deliveries, in the order of all charts and tables.
enum SumStates {
    static func all(_ counts: CountsResult) -> [(name: String, count: Int)] {
        [
            ("accepted", counts.accepted), ("rejected", counts.rejected), ("unknown", counts.unknown),
            ("suppressed", counts.suppressed), ("leased", counts.leased), ("pending", counts.pending),
        ]
    }
}

extension Chart {
    /// Returns the whole audience as one bar, divided by the states of its deliveries.
    ///
    /// - Parameter empty: the sentence for an audience without devices.
    package static func closedSum(
        _ counts: CountsResult, id: String = "sum", empty: String = "The audience is empty."
    ) -> Chart {
        let states = SumStates.all(counts)
        let present = states.filter { $0.count > 0 }
        let rows = (states + [("audience", counts.audience)]).map {
            [$0.0, $0.1.grouped, $0.1.share(of: counts.audience)]
        }
        let shares = present.map { "\($0.count.grouped) \($0.name)" }.joined(separator: ", ")
        return Chart(
            id: id, title: "Audience by state",
            summary: present.isEmpty ? empty : "Of \(counts.audience.grouped): \(shares).",
            height: sumHeight, drawing: present.isEmpty ? "" : sumDrawing(present),
            legend: present.map {
                LegendEntry(
                    style: $0.name,
                    name: "\($0.name) \($0.count.grouped) (\($0.count.share(of: counts.audience)))")
            },
            table: ChartTable(columns: ["state", "deliveries", "of the audience"], rows: rows))
    }

    private static let sumHeight = 20
    /// The minimum width of a part, so that a small count stays visible.
    private static let sumPartMin = 4.0

    private static func sumDrawing(_ states: [(name: String, count: Int)]) -> String {
        let total = states.reduce(0.0) { $0 + Double($1.count) }
        let free = Double(width) - sumPartMin * Double(states.count)
        var x = 0.0
        return states.map { state in
            let size = sumPartMin + free * Double(state.count) / total
            defer { x += size }
            // A gap of 1.5 units separates neighbours, for readers who cannot distinguish their colours.
            return
                "<rect class=\"fill \(state.name)\" x=\"\(unit(x))\" width=\"\(unit(size - 1.5))\" height=\"\(sumHeight)\">"
                + "<title>\(state.name): \(state.count.grouped)</title></rect>"
        }.joined()
    }

    /// Returns a chart with a bar for each reason of a final state, in the given order.
    ///
    /// - Parameter state: `suppressed`, `rejected` or `unknown`. It determines the colour and the title.
    package static func reasons(
        _ reasons: [ReportResult.Reason], of state: String, id: String? = nil
    ) -> Chart {
        let total = reasons.reduce(0.0) { $0 + Double($1.count) }
        let most = reasons.map(\.count).max() ?? 0
        let rows = reasons.map { reason in
            BarRow(
                name: name(reason),
                value: "\(reason.count.grouped)  (\(ShortNumber.percent(Double(reason.count) / max(1, total))))",
                drawing: { y in
                    let size = most > 0 ? Double(reason.count) / Double(most) * Double(width) : 0
                    return
                        "<rect class=\"fill \(state)\" y=\"\(y)\" width=\"\(unit(max(size, reason.count > 0 ? 2 : 0)))\""
                        + " height=\"10\"/>"
                })
        }
        let heads = ["reason", "deliveries"]
        return Chart(
            id: id ?? "\(state)-reasons", title: "\(state.prefix(1).uppercased())\(state.dropFirst()) by reason",
            summary: rows.isEmpty
                ? "None was \(state)."
                : reasons.prefix(6).map { "\(name($0)) \($0.count.grouped)" }.joined(separator: ", "),
            height: BarRow.height(rows), drawing: BarRow.drawing(rows), legend: [],
            note: rows.isEmpty
                ? "" : ["Shares are of all \(state).", BarRow.note(rows)].compactMap(\.self).joined(separator: " "),
            table: ChartTable(columns: heads, rows: reasons.map { [name($0), $0.count.grouped] }))
    }

    static func name(_ reason: ReportResult.Reason) -> String {
        (reason.status.map { "\($0) " } ?? "") + (reason.reason.isEmpty ? "no reason" : reason.reason)
    }
}

/// A row of a chart. The text is above the bar, so that it fits on every screen.
struct BarRow {
    /// The maximum number of rows drawn. The table contains all rows.
    static let shownMax = 12
    static let step = 50

    let name: String
    let value: String
    /// Returns the bar, which is 10 units high, at this distance from the top.
    let drawing: (_ y: Int) -> String

    static func height(_ rows: [BarRow]) -> Int { min(rows.count, shownMax) * step }

    static func drawing(_ rows: [BarRow]) -> String {
        rows.prefix(shownMax).enumerated().map { index, row in
            let top = index * step
            return "<text x=\"0\" y=\"\(top + 17)\">\(row.name.cut(toWidth: 34).escapedHTML)</text>"
                + "<text class=\"value\" x=\"\(Chart.width)\" y=\"\(top + 17)\" text-anchor=\"end\">"
                + "\(row.value.escapedHTML)</text>" + row.drawing(top + 26)
        }.joined()
    }

    /// Returns a note with the number of rows that are not drawn, or `nil` if all are drawn.
    static func note(_ rows: [BarRow]) -> String? {
        rows.count > shownMax ? "\((rows.count - shownMax).grouped) more are in the table." : nil
    }
}

extension String {
    /// Returns the text cut to this width, with an ellipsis for the rest. Characters from U+1100, such as East Asian
    /// ones, count as two.
    func cut(toWidth max: Int) -> String {
        var width = 0
        for index in indices {
            width += self[index].unicodeScalars.first.map { $0.value >= 0x1100 ? 2 : 1 } ?? 1
            if width > max { return self[..<index] + "…" }
        }
        return self
    }
}
