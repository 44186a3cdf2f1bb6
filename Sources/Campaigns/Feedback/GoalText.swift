import Foundation
import Model
import Store

/// A comparison in words.
struct GoalText {
    private let report: GoalReport
    private let look: FeedbackLook

    init(_ report: GoalReport, _ look: FeedbackLook) {
        self.report = report
        self.look = look
    }

    var summary: String {
        if let obstacle = look.obstacle { return "\(goal): \(obstacle)" }
        guard look.counted != nil else { return "\(goal): \(Self.notYet(look))" }
        guard report.treated.of + (report.heldOut?.of ?? 0) > 0 else { return "\(goal): \(Self.noDevices)" }
        let start = "\(counted): \(Self.share(report.treated)) of the devices not held out"
        guard let heldOut = report.heldOut else { return start + early }
        guard report.treated.of > 0 else {
            return "\(counted): \(Self.share(heldOut)) of the devices held out; all devices were held out, so there is "
                + "no comparison\(early)"
        }
        guard heldOut.of > 0 else { return start + "; no device was held out, so there is no comparison" + early }
        let compared = "\(start), \(Self.share(heldOut)) of those held out. "
        if let named = report.namedPush { return compared + Self.notComparable(named) + early }
        guard let difference = report.difference, let low = report.low, let high = report.high else { return compared }
        let interval = "\(Self.points(low)) to \(Self.points(high)) points"
        let finding =
            low > 0
            ? "The push made \(Self.points(difference)) points more do it (\(interval))"
            : high < 0
                ? "The push made \(Self.points(-difference)) points fewer do it (\(interval))"
                : "Chance alone may explain the difference (\(interval))"
        let power = report.detectable.map {
            "; in 80 of 100 such runs this holdout shows a difference of \(Self.points($0)) points or more"
        }
        return compared + finding + (power ?? "") + early
    }

    func summary(_ removal: FeedbackRemoval) -> String { "\(goal): \(Self.deleted(removal))" }

    /// The event, and the time in which the final look counts it.
    private var goal: String {
        let within = WrittenDuration.text(look.goal.within)
        return look.followsClocks
            ? "\(report.event) within \(within) of each device's wave"
            : "\(report.event) by \(within) after the last push"
    }

    /// The event, and the time in which this look counts it.
    private var counted: String {
        let time = WrittenDuration.text(.seconds(report.lookedAtSeconds))
        if look.followsClocks { return "\(report.event) within \(time) of each device's wave" }
        return report.isFinal ? "\(goal) (\(time) from the start)" : "\(report.event) by \(time) after the start"
    }

    private var early: String {
        guard !report.isFinal else { return "" }
        let within = WrittenDuration.text(look.goal.within)
        return "; an early result: the final one counts "
            + (look.followsClocks ? "\(within) from each device's wave" : "up to \(within) after the last push")
    }

    /// Says why nothing can be counted.
    static func deleted(_ removal: FeedbackRemoval) -> String {
        let kept = WrittenDuration.text(removal.removedAt - removal.receivedBefore)
        return "the reports of apps up to \(removal.receivedUntil.iso8601.prefix(10)) were deleted, at last on "
            + "\(removal.removedAt.iso8601.prefix(10)), because `retention: {events}` kept them for \(kept); so "
            + "nothing can be counted or compared"
    }

    static let noDevices = "there are no devices to compare"

    static func notYet(_ look: FeedbackLook) -> String { "the first figures come \(look.firstFigures)" }

    private static func notComparable(_ devices: Int) -> String {
        "This shows no effect of the push: reports of \(devices.counted("device")) name a push by `ref`, and a device "
            + "that is held out has no push to name. Report the event by `installation_id` and `topic`"
    }

    static func share(_ share: FeedbackReport.Share) -> String {
        "\(share.percent.map(points) ?? "0")% (\(share.devices.grouped) of \(share.of.grouped))"
    }

    static func points(_ number: Double) -> String {
        let text = String(format: "%.2f", number)
        return text == "-0.00" ? "0.00" : text
    }
}
