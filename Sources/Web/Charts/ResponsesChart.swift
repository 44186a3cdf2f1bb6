package import Campaigns
import Model

extension Chart {
    /// The maximum number of runs of a chart of responses.
    static let responsesMax = 20

    /// Returns a chart of the opens and goals of runs, one after the other.
    ///
    /// - Parameter responses: the runs, oldest first.
    package static func responses(_ responses: [RunResponse], id: String = "responses") -> Chart {
        ResponsesChart(id: id, responses: responses).chart
    }
}

private struct ResponsesChart {
    /// The minimum distance between two labels of the axis.
    private static let labelWidth = 90.0

    let id: String
    let responses: [RunResponse]

    private var hasGoals: Bool { responses.contains { $0.goal != nil } }

    var chart: Chart {
        let goalHeads = hasGoals ? ["goal", "of treated", "95 % from", "to"] : []
        let table = ChartTable(
            columns: ["Run", "started (UTC)", "opened", "of accepted", "95 % from", "to"] + goalHeads,
            rows: responses.map { response in
                ["\(response.run)", Self.time(response)] + Self.cells(response.opened)
                    + (hasGoals
                        ? response.goal?.share.map(Self.cells) ?? [response.goal?.reason ?? "", "", "", ""] : [])
            })
        let goals =
            hasGoals ? [LegendEntry(style: "accent", name: "reached the goal (share of devices not held out)")] : []
        return Chart(
            id: id, title: "Opens\(hasGoals ? " and goals" : "") of the last runs", summary: summary,
            height: PlotFrame.drawingHeight, drawing: drawing,
            legend: [LegendEntry(style: "accepted", name: "opened (share of accepted pushes)")] + goals,
            note: "One point for each finished run with opens, the newest at the right; the lines are the 95 % "
                + "intervals."
                + (hasGoals ? " A goal counts up to its time after the last push of the run." : "") + " Times in UTC.",
            table: table)
    }

    private var summary: String {
        responses.suffix(6).map { "run \($0.run) \(Self.percent($0.opened.percent ?? 0)) opened" }
            .joined(separator: ", ") + "."
    }

    private static func percent(_ percent: Double) -> String { ShortNumber.percent(percent / 100, step: 0.0001) }

    private static func cells(_ share: FeedbackReport.Share) -> [String] {
        [
            "\(share.devices.grouped) (\(percent(share.percent ?? 0)))", share.of.grouped, percent(share.low),
            percent(share.high),
        ]
    }

    private static func time(_ response: RunResponse) -> String {
        String(response.at.iso8601.shownTime.prefix(16))
    }

    private var drawing: String {
        let shares = responses.flatMap { [$0.opened, $0.goal?.share].compactMap(\.self) }
        let ticks = Ticks.shares(from: 0, to: (shares.map(\.high).max() ?? 0) / 100)
        let top = ticks.last ?? 1
        let step = ticks.count > 1 ? ticks[1] - ticks[0] : 1
        let marks = ticks.map { (height: $0 / top, label: ShortNumber.percent($0, step: step)) }
        return PlotFrame.rows(marks) + labels + series("accepted", top, shift: hasGoals ? -4 : 0, \.opened)
            + series("accent", top, shift: 4) { $0.goal?.share }
    }

    private func x(_ index: Int) -> Double { PlotFrame.x((Double(index) + 0.5) / Double(responses.count)) }

    private func series(
        _ style: String, _ top: Double, shift: Double, _ share: (RunResponse) -> FeedbackReport.Share?
    ) -> String {
        responses.enumerated().compactMap { index, response -> String? in
            guard let share = share(response) else { return nil }
            let place = unit(x(index) + shift)
            let y = { (percent: Double) in unit(PlotFrame.y(percent / 100 / top)) }
            return "<path class=\"whisker\" d=\"M\(place) \(y(share.low))V\(y(share.high))\"/>"
                + "<circle class=\"fill \(style)\" cx=\"\(place)\" cy=\"\(y(share.percent ?? 0))\" r=\"5\"/>"
        }.joined()
    }

    /// The days of the runs below the axis, as many as there is room for. The newest run always has one.
    private var labels: String {
        let every = Int((Self.labelWidth / (Double(PlotFrame.width) / Double(responses.count))).rounded(.up))
        let texts = responses.enumerated().filter { (responses.count - 1 - $0.offset) % every == 0 }
            .map { index, response in
                "<text x=\"\(unit(x(index)))\" y=\"\(PlotFrame.bottom + 26)\">\(TimeAxis.day(response.at))</text>"
            }
        return "<path class=\"axis\" d=\"M\(PlotFrame.left) \(PlotFrame.bottom)h\(PlotFrame.width)\"/>"
            + "<g text-anchor=\"middle\">\(texts.joined())</g>"
    }
}
