package import Campaigns
import Foundation
import Model

/// A run's timeline, combined into columns of equal length. Columns without events are left out.
struct TimelineColumns {
    struct Column {
        /// The position from the left. Columns that are left out count, too.
        var index: Int
        var accepted = 0
        var rejected = 0
        var unknown = 0
        var suppressed = 0
        var retried = 0
        var reopened = 0
        /// The latency of the slowest of the combined slots.
        var p50Ms, p99Ms: Double?
    }

    /// The maximum number of columns. A reader cannot distinguish more, and a drawing of this size takes 8 KB.
    static let columnsMax = 360

    let from: Timestamp
    let seconds: Int
    /// The length of the slots that a column combines.
    let slotSeconds: Int
    /// The number of columns from the first to the last. Columns that are left out count, too.
    let count: Int
    let columns: [Column]

    /// Returns `nil` if there is no slot.
    init?(_ timeline: TimelineResult) {
        let slots = timeline.slots.compactMap { slot in
            Timestamp(shown: slot.startsAt).map { (moment: $0, slot: slot) }
        }.sorted { $0.moment < $1.moment }
        guard let first = slots.first?.moment, let last = slots.last?.moment else { return nil }
        let slotSeconds = max(1, timeline.slotSeconds)
        let slotCount = Int((last - first).wholeMilliseconds / 1000) / slotSeconds + 1
        let factor = (slotCount + Self.columnsMax - 1) / Self.columnsMax
        let seconds = slotSeconds * factor
        var columns: [Column] = []
        for (moment, slot) in slots {
            let index = Int((moment - first).wholeMilliseconds / 1000) / seconds
            if columns.last?.index != index { columns.append(Column(index: index)) }
            columns[columns.count - 1].add(slot)
        }
        from = first
        self.seconds = seconds
        self.slotSeconds = slotSeconds
        count = (columns.last?.index ?? 0) + 1
        self.columns = columns
    }

    var axis: TimeAxis { TimeAxis(from: from, to: from + .seconds(count * seconds)) }

    /// Returns the time at which a column begins, with the day if the timeline spans more than one day.
    func label(_ column: Column) -> String {
        let text = (from + .seconds(column.index * seconds)).iso8601
        let isOneDay = from.iso8601.prefix(10) == axis.end.iso8601.prefix(10)
        return isOneDay
            ? String(text.shownTime.suffix(8)) : text.shownTime
    }

    /// The length of a column, such as `10 s` or `4m`.
    var length: String { WrittenDuration.text(.seconds(seconds)) }

    /// Says what a combined column shows of a figure that has no sum; empty if each column is one slot.
    var largestNote: String {
        guard seconds > slotSeconds else { return "" }
        return "Each is the largest value of its intervals of \(WrittenDuration.text(.seconds(slotSeconds))). "
    }

    /// Returns an SVG group with its origin at the bottom left of the frame. One unit to the right is a column, and one
    /// unit upwards is a unit of the drawing.
    func group(_ content: String) -> String {
        let scale = String(format: "%.4f", Double(PlotFrame.width) / Double(count))
        return "<g transform=\"translate(\(PlotFrame.left) \(PlotFrame.bottom)) scale(\(scale) -1)\">\(content)</g>"
    }
}

extension TimelineColumns.Column {
    fileprivate mutating func add(_ slot: TimelineResult.Slot) {
        accepted = accepted.plus(slot.accepted)
        rejected = rejected.plus(slot.rejected)
        unknown = unknown.plus(slot.unknown)
        suppressed = suppressed.plus(slot.suppressed)
        retried = retried.plus(slot.retried)
        reopened = reopened.plus(slot.reopened)
        p50Ms = slot.p50Ms.map { max($0, p50Ms ?? $0) } ?? p50Ms
        p99Ms = slot.p99Ms.map { max($0, p99Ms ?? $0) } ?? p99Ms
    }
}

extension Int {
    /// Returns the sum, or the largest integer if the sum overflows. A negative `other` counts as zero.
    fileprivate func plus(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(Swift.max(0, other))
        return overflow ? .max : sum
    }
}

extension Chart {
    /// Returns a chart of the outcomes over time: accepted, retried, rejected and unknown, stacked.
    package static func outcomes(_ timeline: TimelineResult, id: String = "outcomes") -> Chart {
        OutcomesChart(id: id, columns: TimelineColumns(timeline)).chart
    }

    /// Returns a chart of the response times of APNs: the median and the 99th percentile.
    package static func latency(_ timeline: TimelineResult, id: String = "latency") -> Chart {
        LatencyChart(id: id, columns: TimelineColumns(timeline)).chart
    }
}

private struct OutcomesChart {
    /// The series from the bottom up. Problems are at the bottom, because heights can be compared there. Most columns
    /// have none.
    static let series: [(name: String, value: @Sendable (TimelineColumns.Column) -> Int)] = [
        ("unknown", { $0.unknown }), ("rejected", { $0.rejected }), ("retried", { $0.retried }),
        ("accepted", { $0.accepted }),
    ]

    let id: String
    let columns: TimelineColumns?

    var chart: Chart {
        let title = "Outcomes over time"
        let heads = ["Begins (UTC)"] + Self.series.reversed().map(\.name) + ["suppressed"]
        guard let columns else {
            return Chart(
                id: id, title: title, summary: "No timeline is recorded for this run.", height: 0, drawing: "",
                legend: [], table: ChartTable(columns: heads, rows: []))
        }
        let rows = columns.columns.map { column in
            [columns.label(column)] + Self.series.reversed().map { $0.value(column).grouped } + [
                column.suppressed.grouped
            ]
        }
        return Chart(
            id: id, title: title, summary: summary(columns), height: PlotFrame.drawingHeight, drawing: drawing(columns),
            legend: Self.series.reversed().map { LegendEntry(style: $0.name, name: $0.name) },
            note: "Deliveries in each \(columns.length); retried: attempts that will be repeated. \(columns.axis.note)",
            table: ChartTable(columns: heads, rows: rows))
    }

    private func summary(_ columns: TimelineColumns) -> String {
        let sums = Self.series.reversed().map { series in
            "\(columns.columns.reduce(0) { $0.plus(series.value($1)) }.grouped) \(series.name)"
        }
        let reopened = columns.columns.reduce(0) { $0.plus($1.reopened) }
        let note = reopened > 0 ? " \(reopened.grouped) rejected were taken back later." : ""
        return "Stacked, per \(columns.length): \(sums.joined(separator: ", ")).\(note) \(columns.axis.note)"
    }

    private func drawing(_ columns: TimelineColumns) -> String {
        let totals = columns.columns.map { column in Self.series.reduce(0.0) { $0 + Double($1.value(column)) } }
        let ticks = Ticks.linear(to: totals.max() ?? 0)
        let top = ticks.last ?? 1
        let marks = ticks.map { (height: $0 / top, label: ShortNumber.text($0)) }
        // Each outline also covers the series below it, and the next outline is drawn over that part. Such an outline
        // needs half as much path data as one around a single series.
        let shapes = Self.series.indices.reversed().filter { index in
            columns.columns.contains { Self.series[index].value($0) > 0 }
        }.map { index in
            let style = "fill \(Self.series[index].name)"
            return "<path class=\"\(style)\" d=\"\(outline(columns, through: index, top: top))\"/>"
        }
        return PlotFrame.rows(marks) + columns.group(shapes.joined()) + PlotFrame.columns(columns.axis)
    }

    /// Returns a path along the sum of the series up to `last`. A value above zero adds at least one unit of height.
    private func outline(_ columns: TimelineColumns, through last: Int, top: Double) -> String {
        var path = "M0 0"
        var (x, y, pending) = (0, 0, 0)
        func go(to height: Int) {
            guard height != y else { return }
            if pending > 0 { path += "h\(pending)" }
            path += "v\(height - y)"
            (y, pending) = (height, 0)
        }
        for column in columns.columns {
            let height = Self.series[...last].reduce(0) { sum, series in
                let value = Double(series.value(column))
                return value > 0 ? sum + max(1, Int((value / top * Double(PlotFrame.height)).rounded())) : sum
            }
            if column.index > x {
                go(to: 0)
                pending += column.index - x
            }
            go(to: height)
            pending += 1
            x = column.index + 1
        }
        go(to: 0)
        return path + "z"
    }
}

private struct LatencyChart {
    private static let bounds = 0.1...1e7

    let id: String
    let columns: TimelineColumns?

    var chart: Chart {
        let title = "Latency of APNs over time"
        let heads = ["Begins (UTC)", "p50 ms", "p99 ms"]
        let answered = columns?.columns.filter { $0.p50Ms != nil || $0.p99Ms != nil } ?? []
        guard let columns, !answered.isEmpty else {
            return Chart(
                id: id, title: title, summary: "No response times are recorded for this run.", height: 0, drawing: "",
                legend: [], table: ChartTable(columns: heads, rows: []))
        }
        let rows = answered.map { [columns.label($0), Self.text($0.p50Ms), Self.text($0.p99Ms)] }
        return Chart(
            id: id, title: title, summary: summary(columns, answered), height: PlotFrame.drawingHeight,
            drawing: drawing(columns, answered),
            legend: [.init(style: "p50", name: "p50"), .init(style: "p99", name: "p99")],
            note: "From a request's first byte to its response, in each \(columns.length), on a logarithmic scale. "
                + columns.largestNote + columns.axis.note,
            table: ChartTable(columns: heads, rows: rows))
    }

    private static func text(_ value: Double?) -> String { value.map { unit($0) } ?? "" }

    private func summary(_ columns: TimelineColumns, _ answered: [TimelineColumns.Column]) -> String {
        let worst = answered.compactMap(\.p99Ms).max().map { "p99 at most \(ShortNumber.milliseconds($0))" }
        let usual = answered.compactMap(\.p50Ms).max().map { "p50 at most \(ShortNumber.milliseconds($0))" }
        return "Per \(columns.length): \([usual, worst].compactMap(\.self).joined(separator: ", ")). "
            + columns.axis.note
    }

    private func drawing(_ columns: TimelineColumns, _ answered: [TimelineColumns.Column]) -> String {
        let values = answered.flatMap { [$0.p50Ms, $0.p99Ms].compactMap(\.self) }.map(Self.bounded)
        let ticks = Ticks.logarithmic(from: values.min() ?? 1, to: values.max() ?? 1)
        let (low, high) = (log10(ticks.first ?? 1), log10(ticks.last ?? 10))
        let height = { (value: Double) in (log10(value) - low) / (high - low) }
        let marks = ticks.map { (height: height($0), label: ShortNumber.milliseconds($0)) }
        let line = { (name: String, value: (TimelineColumns.Column) -> Double?) in
            let points = answered.compactMap { column in
                value(column).map {
                    (column.index, Int((height(Self.bounded($0)) * Double(PlotFrame.height)).rounded()))
                }
            }
            return "<path class=\"line \(name)\" d=\"\(Self.steps(points))\"/>"
        }
        return PlotFrame.rows(marks) + columns.group(line("p99", \.p99Ms) + line("p50", \.p50Ms))
            + PlotFrame.columns(columns.axis)
    }

    private static func bounded(_ value: Double) -> Double {
        value.isNaN ? bounds.lowerBound : min(max(value, bounds.lowerBound), bounds.upperBound)
    }

    /// Returns a line at each column's height, interrupted where columns are missing.
    private static func steps(_ points: [(index: Int, height: Int)]) -> String {
        var path = ""
        var (x, y, pending) = (-1, 0, 0)
        for (index, height) in points {
            if index != x || height != y {
                if pending > 0 { path += "h\(pending)" }
                path += index == x ? "v\(height - y)" : "M\(index) \(height)"
                pending = 0
            }
            pending += 1
            (x, y) = (index + 1, height)
        }
        return pending > 0 ? path + "h\(pending)" : path
    }
}
