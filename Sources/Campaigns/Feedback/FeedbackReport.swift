import Foundation
import Model
import Store

/// What people did with the pushes of a run: the stable shape of `feedback` in `report --format json`. Shares have the
/// numbers that they are made of, so that every figure can be computed again.
package struct FeedbackReport: Codable, Hashable, Sendable {
    /// A part of a group of devices. Percentages are rounded to hundredths, but to 0 and 100 only if they are exact.
    package struct Share: Codable, Hashable, Sendable {
        package var devices: Int
        package var of: Int
        /// Absent if `of` is 0.
        package var percent: Double?
        /// The ends of the 95 % interval (Wilson), in percent.
        package var low: Double
        package var high: Double

        init(_ proportion: Proportion) {
            devices = proportion.count
            of = proportion.total
            percent = proportion.rate.map(Self.percent)
            let interval = proportion.interval()
            (low, high) = (Self.percent(interval.lowerBound), Self.percent(interval.upperBound))
        }

        static func percent(_ rate: Double) -> Double { RoundedShare.percent(rate, decimals: 2) }
    }

    /// How soon people opened the app, in minutes after APNs accepted the push.
    package struct Delay: Codable, Hashable, Sendable {
        /// Half of the opens came within this time, and nine of ten within the other.
        package var half: Int
        package var most: Int
    }

    package struct Point: Codable, Hashable, Sendable {
        /// Minutes after APNs accepted the push.
        package var minute: Int
        /// The opens from this minute to the minute of the next point.
        package var opened: Int
    }

    package struct Named: Codable, Hashable, Sendable {
        package var name: String
        package var share: Share
    }

    /// Arrivals, over the devices that were asked to report them.
    package struct Arrivals: Codable, Hashable, Sendable {
        /// The percentage of the devices that were asked.
        package var askedPercent: Double
        package var reported: Int
        /// The expected number of asked devices among the accepted pushes.
        package var asked: Int
    }

    package var accepted: Int
    /// The opens of accepted pushes.
    package var opened: Share
    /// The opens of the other pushes, such as those whose outcome is unknown. They are in no share. Absent if there are
    /// none.
    package var openedNotAccepted: Int?
    /// Absent without opens.
    package var delay: Delay?
    package var curve: [Point]
    package var dismissed: Share
    package var actions: [Named]
    /// Absent if no device is asked to report the arrival.
    package var arrivals: Arrivals?
    /// The opens by variant. Empty without variants. Variants with fewer than 20 accepted pushes are merged.
    package var variants: [Named]
    /// The opens by the language of the text, most accepted pushes first. Languages with fewer than 20 accepted pushes
    /// are merged into `other`. Absent if all devices got the same text.
    package var locales: [Named]?
    /// What the opens say about the variants. Absent without variants.
    package var variantsSummary: String?
    /// The goal of the campaign. Absent if it names none.
    package var conversion: GoalReport?
    /// The devices on which alerts were switched off within a day, for campaigns with a holdout.
    package var alertsOff: GoalReport?
    /// Whether hours of their own made more people open the push. Absent in a run without `best_hour`.
    package var bestHour: BestHourReport?
}

/// A comparison of the devices that were treated with those that were held out, as assigned by the hash: the devices
/// whose push failed count, too.
package struct GoalReport: Codable, Hashable, Sendable {
    package var event: String
    package var withinSeconds: Int64
    package var treated: FeedbackReport.Share
    /// Absent without a holdout.
    package var heldOut: FeedbackReport.Share?
    /// The sum of the values, in the unit of the app.
    package var treatedValue: Double?
    package var heldOutValue: Double?
    /// Treated minus held out, in percentage points, and its interval (Newcombe).
    package var difference: Double?
    package var low: Double?
    package var high: Double?
    /// The smallest difference, in percentage points, that this holdout can see.
    package var detectable: Double?
    /// Whether the time has passed for all devices. Until then the interval is wider, and is that of the last look.
    package var isFinal: Bool
    /// The time after the start up to which events count, in seconds.
    package var lookedAtSeconds: Int64
    /// When reports of apps that count here were deleted, ISO 8601 and UTC. Then nothing is counted or compared. Absent
    /// while all of them are kept.
    package var reportsDeletedAt: String?
    package var summary: String

    /// - Parameter removal: the deletion of reports that count here; `nil` while all of them are kept.
    init(_ look: FeedbackLook, _ arms: FeedbackArms, hasHoldout: Bool, removal: FeedbackRemoval? = nil) {
        let goal = look.goal
        event = goal.kind == .converted ? goal.name : goal.kind.name
        withinSeconds = goal.within.components.seconds
        let (treated, heldOut) = (Proportion(arms.treated), Proportion(arms.heldOut))
        self.treated = FeedbackReport.Share(treated)
        isFinal = look.isFinal
        lookedAtSeconds = look.counted?.within.components.seconds ?? 0
        summary = ""
        if let removal {
            reportsDeletedAt = removal.removedAt.iso8601
            summary = GoalText(self).summary(removal)
            return
        }
        let hasValue = arms.treated.valueMicros != 0 || arms.heldOut.valueMicros != 0
        treatedValue = hasValue ? Double(arms.treated.valueMicros) / 1e6 : nil
        if hasHoldout {
            self.heldOut = FeedbackReport.Share(heldOut)
            heldOutValue = hasValue ? Double(arms.heldOut.valueMicros) / 1e6 : nil
            let points = PercentagePoints(treated, minus: heldOut, z: look.z)
            (difference, low, high, detectable) = (points.difference, points.low, points.high, points.detectable)
        }
        summary = GoalText(self).summary(look)
    }
}

/// The difference of two shares in percentage points. The interval is Newcombe's.
struct PercentagePoints {
    /// Absent if a group has no devices.
    private(set) var difference: Double?
    private(set) var low: Double?
    private(set) var high: Double?
    /// The smallest difference that such groups show, see ``RateDifference/detectable(_:_:z:)``.
    let detectable: Double?

    init(_ first: Proportion, minus second: Proportion, z: Double) {
        detectable = RateDifference.detectable(first, second, z: z).map(Self.points)
        guard let found = RateDifference(first, minus: second, z: z) else { return }
        difference = Self.points(found.difference)
        low = Self.points(found.interval.lowerBound)
        high = Self.points(found.interval.upperBound)
    }

    /// Returns a difference from -1 to 1 in points, rounded to hundredths.
    static func points(_ difference: Double) -> Double { (difference * 10_000).rounded() / 100 }
}

/// A look at a goal. Until the goal's time has passed, a comparison is looked at after 1, 2, 4, 8 and more hours.
///
/// Someone who looks at every figure sees at most ten intervals before the final one. Each of them covers the truth
/// with a probability of 99.5 %, so all of them and the final one together do with at least 90 %.
struct FeedbackLook {
    static let first: Duration = .seconds(3600)
    private static let looksMax = 10
    /// The two-sided 99.5 % quantile of the normal distribution.
    static let earlyZ = 2.807_033_768_343_804

    let goal: FeedbackGoal
    /// Whether the goal's time has passed for all devices.
    let isFinal: Bool
    /// The goal up to this look; `nil` before the first one.
    let counted: FeedbackGoal?
    /// Whether the run ended before it had an audience, so that there will be no figures.
    let hasNoAudience: Bool

    /// - Parameter waitsForAll: whether the first look comes only when every device has had its turn, because the turns
    ///   of the compared groups differ.
    init(_ goal: FeedbackGoal, _ run: Run, now: Timestamp, waitsForAll: Bool = false) {
        self.goal = goal
        hasNoAudience = run.state.isFinal && (run.startedAt == nil || run.counts.audience == 0)
        let spread = Self.spread(run.definition)
        let started = run.startedAt ?? run.createdAt
        let passed = now - started
        let ended = run.finishedAt ?? (run.state.isFinal ? started : now)
        // Each push has the whole time, also the last one of a slow run. Held-out devices have no push, so the time of
        // all devices is longer by that of sending. In a run by each device's clock, it begins with the wave.
        let sending = spread > .zero ? .zero : max(.zero, ended - started)
        isFinal = run.state.isFinal && passed >= goal.within + spread && now - ended >= goal.within
        var counted = goal
        counted.within = goal.within + sending
        if !isFinal {
            counted.within = min(counted.within, Self.latest(at: waitsForAll ? passed - spread : passed) ?? .zero)
        }
        self.counted = counted.within > .zero ? counted : nil
    }

    /// Returns the time from the first wave to the last one.
    private static func spread(_ definition: RunDefinition) -> Duration {
        guard definition.campaign.schedule?.zone == .recipient else { return .zero }
        let hours = definition.bestHours.map { Duration.seconds(3600 * ($0.count - 1)) } ?? .zero
        return .seconds(86_400) + hours
    }

    var z: Double { isFinal ? Proportion.z95 : Self.earlyZ }

    /// Returns the latest look at or before a time, or `nil` if there was none.
    static func latest(at time: Duration) -> Duration? {
        guard time >= first else { return nil }
        var look = first
        for _ in 1..<looksMax where look * 2 <= time { look *= 2 }
        return look
    }
}

/// A comparison in words.
struct GoalText {
    private let report: GoalReport

    init(_ report: GoalReport) { self.report = report }

    func summary(_ look: FeedbackLook) -> String {
        let within = WrittenDuration.text(.seconds(report.withinSeconds))
        if look.hasNoAudience { return "\(report.event) within \(within): \(Self.noAudience)" }
        guard report.isFinal || report.lookedAtSeconds > 0 else {
            let first = min(.seconds(report.withinSeconds), FeedbackLook.first)
            return "\(report.event) within \(within): the first figures come \(WrittenDuration.text(first)) after the "
                + "start of the run"
        }
        let start = "\(report.event) within \(within): \(Self.share(report.treated)) of the devices not held out"
        guard report.treated.of + (report.heldOut?.of ?? 0) > 0 else {
            return "\(report.event) within \(within): there are no devices to compare; outcomes by device may be pruned"
        }
        guard let heldOut = report.heldOut else { return start + early }
        guard report.treated.of > 0 else {
            return "\(report.event) within \(within): \(Self.share(heldOut)) of the devices held out; all devices were "
                + "held out, so there is no comparison\(early)"
        }
        guard let difference = report.difference, let low = report.low, let high = report.high else {
            return start + "; no device was held out, so there is no comparison" + early
        }
        let compared = "\(start), \(Self.share(heldOut)) of those held out. "
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

    func summary(_ removal: FeedbackRemoval) -> String {
        "\(report.event) within \(WrittenDuration.text(.seconds(report.withinSeconds))): \(Self.deleted(removal))"
    }

    /// Says why nothing can be counted.
    static func deleted(_ removal: FeedbackRemoval) -> String {
        let kept = WrittenDuration.text(removal.removedAt - removal.receivedBefore)
        return "the reports of apps up to \(removal.receivedUntil.iso8601.prefix(10)) were deleted, at last on "
            + "\(removal.removedAt.iso8601.prefix(10)), because `retention: {events}` kept them for \(kept); so "
            + "nothing can be counted or compared"
    }

    static let noAudience = "the run ended before it had an audience, so there are no figures"

    private var early: String {
        guard !report.isFinal else { return "" }
        return "; an early result, \(WrittenDuration.text(.seconds(report.lookedAtSeconds))) after the start"
    }

    static func share(_ share: FeedbackReport.Share) -> String {
        "\(share.percent.map(points) ?? "0")% (\(share.devices.grouped) of \(share.of.grouped))"
    }

    static func points(_ number: Double) -> String {
        let text = String(format: "%.2f", number)
        return text == "-0.00" ? "0.00" : text
    }
}

extension Proportion {
    init(_ arm: FeedbackArms.Arm) { self.init(arm.reached, of: arm.devices) }
}
