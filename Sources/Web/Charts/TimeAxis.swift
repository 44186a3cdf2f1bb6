import Foundation
package import Model

/// Round numbers for the marks of an axis.
package enum Ticks {
    /// Returns at most `count + 1` marks, from 0 to the first one at or above `max`. The step between them is 1, 2 or 5
    /// times a power of ten.
    package static func linear(to max: Double, atMost count: Int = 5) -> [Double] {
        let step = Swift.max(1, round(Swift.max(max, 1) / Double(count)))
        return (0...Int((Swift.max(max, 1) / step).rounded(.up))).map { Double($0) * step }
    }

    /// Returns marks that enclose `low` to `high`, both within 0 to 1. A range narrower than 0.5 % has the step of 0.5
    /// %.
    package static func shares(from low: Double, to high: Double) -> [Double] {
        let span = Swift.max(high - low, 0.005)
        let step = round(span / 4)
        let first = Swift.max(0, (low / step).rounded(.down))
        let last = Swift.min((1 / step).rounded(), Swift.max((high / step).rounded(.up), first + 1))
        return (Int(Swift.min(first, last - 1))...Int(last)).map { Double($0) * step }
    }

    /// Returns powers of ten that enclose `low` to `high`. If there are at most three, adds 2 and 5 times each power.
    package static func logarithmic(from low: Double, to high: Double) -> [Double] {
        let first = Int(log10(low).rounded(.down))
        let last = Swift.max(first + 1, Int(log10(high).rounded(.up)))
        let steps: [Double] = last - first <= 2 ? [1, 2, 5] : [1]
        return (first..<last).flatMap { power in steps.map { $0 * pow(10, Double(power)) } } + [pow(10, Double(last))]
    }

    /// Returns the smallest of 1, 2 and 5 times a power of ten that is not below the value.
    private static func round(_ value: Double) -> Double {
        let power = pow(10, log10(value).rounded(.down))
        let digit = value / power
        return power * (digit <= 1.000_001 ? 1 : digit <= 2.000_001 ? 2 : digit <= 5.000_001 ? 5 : 10)
    }
}

/// Short texts of numbers for axes.
package enum ShortNumber {
    /// Returns a text such as `0`, `500`, `2.5k` or `12M`.
    package static func text(_ value: Double) -> String {
        let units: [(Double, String)] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        let (size, name) = units.first { value >= $0.0 } ?? (1, "")
        return unit(value / size) + name
    }

    /// Returns a text such as `20 ms` or `1.5 s`.
    package static func milliseconds(_ value: Double) -> String {
        value >= 1000 ? "\(ShortNumber.text(value / 1000)) s" : "\(unit(value)) ms"
    }

    /// Returns a text such as `97.3 %` or `99.85 %`. It has as many decimals as the step between two marks needs.
    package static func percent(_ share: Double, step: Double = 0.001) -> String {
        let decimals = step >= 0.0099 ? 0 : step >= 0.00099 ? 1 : 2
        return String(format: "%.\(decimals)f %%", RoundedShare.percent(share, decimals: decimals))
    }
}

/// An axis of time along the width of a chart, in UTC, with marks at round times.
package struct TimeAxis {
    private static let steps: [Int64] = [
        1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 345_600,
    ]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    let from: Timestamp
    /// The end of the axis, which is after `from`.
    let end: Timestamp
    private let step: Int64

    package init(from: Timestamp, to end: Timestamp) {
        self.from = from
        self.end = max(end, from + .seconds(1))
        let wanted = Double(self.end.milliseconds - from.milliseconds) / 1000 / 5
        var step = Self.steps.first { Double($0) >= wanted } ?? 604_800
        while Double(step) < wanted { step *= 2 }
        self.step = step
    }

    /// Returns the position, from 0 at the left to 1 at the right.
    func position(_ moment: Timestamp) -> Double {
        Double(moment.milliseconds - from.milliseconds) / Double(end.milliseconds - from.milliseconds)
    }

    /// The marks: at most six, at whole multiples of the step.
    package var marks: [(moment: Timestamp, label: String)] {
        let first = (from.milliseconds + step * 1000 - 1).quotientFloor(step * 1000) * step * 1000
        return stride(from: first, through: end.milliseconds, by: Int(step) * 1000).map {
            let moment = Timestamp(milliseconds: $0)
            return (moment, label(moment))
        }
    }

    /// Returns the day for a step of whole days and for midnight, and the time otherwise.
    private func label(_ moment: Timestamp) -> String {
        let isMidnight = moment.milliseconds % 86_400_000 == 0
        if step >= 86_400 || isMidnight && from < moment { return Self.day(moment) }
        return String(moment.iso8601.dropFirst(11).prefix(step < 60 ? 8 : 5))
    }

    /// The explanation of the marks, such as `Times in UTC, 21 Nov 2026.`
    package var note: String {
        let (first, last) = (Self.day(from), Self.day(end))
        let year = { (moment: Timestamp) in String(moment.iso8601.prefix { $0 != "-" }) }
        if first == last, year(from) == year(end) { return "Times in UTC, \(first) \(year(from))." }
        return "Times in UTC, \(first) \(year(from)) to \(last) \(year(end))."
    }

    /// Returns a text such as `21 Nov`.
    static func day(_ moment: Timestamp) -> String {
        let parts = moment.iso8601.prefix { $0 != "T" }.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3, (1...12).contains(parts[1]) else { return "" }
        return "\(parts[2]) \(months[parts[1] - 1])"
    }
}

/// The frame of a chart with a scale of numbers at the left and of time at the bottom.
struct PlotFrame {
    static let left = 72
    static let width = Chart.width - left - 18
    static let top = 14
    static let height = 170
    static let bottom = top + height
    /// The height of the whole drawing, including the labels of the time axis.
    static let drawingHeight = bottom + 34

    /// Returns horizontal lines at the marks, with their labels.
    ///
    /// - Parameter marks: heights from 0 at the bottom to 1 at the top.
    static func rows(_ marks: [(height: Double, label: String)]) -> String {
        let lines = marks.map { "M\(left) \(unit(y($0.height)))h\(width)" }.joined()
        let labels = marks.map {
            "<text x=\"\(left - 8)\" y=\"\(unit(y($0.height) + 5))\">\($0.label.escapedHTML)</text>"
        }
        return "<path class=\"grid\" d=\"\(lines)\"/><g text-anchor=\"end\">\(labels.joined())</g>"
    }

    /// Returns the marks of the time axis with their labels.
    static func columns(_ axis: TimeAxis) -> String {
        let marks = axis.marks.map { (x: x(axis.position($0.moment)), label: $0.label) }
        let lines = marks.map { "M\(unit($0.x)) \(bottom)v5" }.joined()
        let labels = marks.map { mark in
            // At the right end there is no room for the second half of a centred label.
            let anchor = mark.x > Double(left + width - 20) ? " text-anchor=\"end\"" : ""
            let shift = anchor.isEmpty ? mark.x : Double(Chart.width)
            return "<text x=\"\(unit(shift))\" y=\"\(bottom + 26)\"\(anchor)>\(mark.label)</text>"
        }
        return "<path class=\"axis\" d=\"M\(left) \(bottom)h\(width)\(lines)\"/>"
            + "<g text-anchor=\"middle\">\(labels.joined())</g>"
    }

    static func x(_ position: Double) -> Double { Double(left) + position * Double(width) }
    static func y(_ height: Double) -> Double { Double(bottom) - height * Double(self.height) }
}
