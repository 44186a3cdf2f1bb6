import Foundation
package import Model

/// Round numbers along an axis.
package enum Ticks {
    /// From 0 to the first of them at or above `max`, each a whole multiple of 1, 2 or 5 times a power of ten.
    package static func linear(to max: Double, atMost count: Int = 5) -> [Double] {
        let step = Swift.max(1, round(Swift.max(max, 1) / Double(count)))
        return (0...Int((Swift.max(max, 1) / step).rounded(.up))).map { Double($0) * step }
    }

    /// Around `low` to `high`, both within 0 to 1; at least half a percent apart.
    package static func shares(from low: Double, to high: Double) -> [Double] {
        let span = Swift.max(high - low, 0.005)
        let step = round(span / 4)
        let first = Swift.max(0, (low / step).rounded(.down))
        let last = Swift.min((1 / step).rounded(), Swift.max((high / step).rounded(.up), first + 1))
        return (Int(Swift.min(first, last - 1))...Int(last)).map { Double($0) * step }
    }

    /// Powers of ten around `low` and `high`, with 2 and 5 between them where there are few.
    package static func logarithmic(from low: Double, to high: Double) -> [Double] {
        let first = Int(log10(low).rounded(.down))
        let last = Swift.max(first + 1, Int(log10(high).rounded(.up)))
        let steps: [Double] = last - first <= 2 ? [1, 2, 5] : [1]
        return (first..<last).flatMap { power in steps.map { $0 * pow(10, Double(power)) } } + [pow(10, Double(last))]
    }

    /// The next of 1, 2 and 5 times a power of ten at or above.
    private static func round(_ value: Double) -> Double {
        let power = pow(10, log10(value).rounded(.down))
        let digit = value / power
        return power * (digit <= 1.000_001 ? 1 : digit <= 2.000_001 ? 2 : digit <= 5.000_001 ? 5 : 10)
    }
}

/// Numbers as short as an axis needs them.
package enum ShortNumber {
    /// `0`, `500`, `2.5k`, `12M`.
    package static func text(_ value: Double) -> String {
        let units: [(Double, String)] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        let (size, name) = units.first { value >= $0.0 } ?? (1, "")
        return unit(value / size) + name
    }

    /// `20 ms`, `1.5 s`.
    package static func milliseconds(_ value: Double) -> String {
        value >= 1000 ? "\(ShortNumber.text(value / 1000)) s" : "\(unit(value)) ms"
    }

    /// `97.3 %`, `99.85 %`: as many decimals as the step between two of them needs.
    package static func percent(_ share: Double, step: Double = 0.001) -> String {
        let decimals = step >= 0.0099 ? 0 : step >= 0.00099 ? 1 : 2
        return String(format: "%.\(decimals)f %%", share * 100)
    }
}

/// Moments along the width of a chart, in UTC, with marks at times that a person reads.
package struct TimeAxis {
    private static let steps: [Int64] = [
        1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 345_600,
    ]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    let from: Timestamp
    /// After `from`.
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

    /// From 0 at the left to 1 at the right.
    func position(_ moment: Timestamp) -> Double {
        Double(moment.milliseconds - from.milliseconds) / Double(end.milliseconds - from.milliseconds)
    }

    /// At most six, on whole multiples of the step.
    package var marks: [(moment: Timestamp, label: String)] {
        let first = (from.milliseconds + step * 1000 - 1).quotientFloor(step * 1000) * step * 1000
        return stride(from: first, through: end.milliseconds, by: Int(step) * 1000).map {
            let moment = Timestamp(milliseconds: $0)
            return (moment, label(moment))
        }
    }

    /// The day where the marks are days, and at midnight; the time otherwise.
    private func label(_ moment: Timestamp) -> String {
        let isMidnight = moment.milliseconds % 86_400_000 == 0
        if step >= 86_400 || isMidnight && from < moment { return Self.day(moment) }
        return String(moment.iso8601.dropFirst(11).prefix(step < 60 ? 8 : 5))
    }

    /// What a reader of the marks has to know: `Times in UTC, 21 Nov 2026.`
    package var note: String {
        let (first, last) = (Self.day(from), Self.day(end))
        let year = { (moment: Timestamp) in String(moment.iso8601.prefix { $0 != "-" }) }
        if first == last, year(from) == year(end) { return "Times in UTC, \(first) \(year(from))." }
        return "Times in UTC, \(first) \(year(from)) to \(last) \(year(end))."
    }

    /// `21 Nov`.
    static func day(_ moment: Timestamp) -> String {
        let parts = moment.iso8601.prefix { $0 != "T" }.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 3, (1...12).contains(parts[1]) else { return "" }
        return "\(parts[2]) \(months[parts[1] - 1])"
    }
}

/// The room of a chart with numbers up its left side and time along its bottom.
struct PlotFrame {
    static let left = 72
    static let width = Chart.width - left - 18
    static let top = 14
    static let height = 170
    static let bottom = top + height
    /// Of the whole drawing.
    static let drawingHeight = bottom + 34

    /// Lines across at the marks, with their labels.
    ///
    /// - Parameter marks: heights from 0 at the bottom to 1 at the top.
    static func rows(_ marks: [(height: Double, label: String)]) -> String {
        let lines = marks.map { "M\(left) \(unit(y($0.height)))h\(width)" }.joined()
        let labels = marks.map {
            "<text x=\"\(left - 8)\" y=\"\(unit(y($0.height) + 5))\">\($0.label.escapedHTML)</text>"
        }
        return "<path class=\"grid\" d=\"\(lines)\"/><g text-anchor=\"end\">\(labels.joined())</g>"
    }

    /// Times along the bottom.
    static func columns(_ axis: TimeAxis) -> String {
        let marks = axis.marks.map { (x: x(axis.position($0.moment)), label: $0.label) }
        let lines = marks.map { "M\(unit($0.x)) \(bottom)v5" }.joined()
        let labels = marks.map { mark in
            // At the right end there is no room for the half of it.
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

extension Int64 {
    fileprivate func quotientFloor(_ divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
