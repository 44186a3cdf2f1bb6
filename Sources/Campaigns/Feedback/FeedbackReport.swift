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

    /// A group of which only the size is shown, because so few devices could reveal what one person did. It has 20
    /// devices or more if its share would reveal that of a smaller one by subtraction.
    package struct SmallGroup: Codable, Hashable, Sendable {
        package var name: String
        package var accepted: Int
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
    /// The opens by variant. Empty without variants. Variants whose opens are not shown are in ``smallVariants``.
    package var variants: [Named]
    /// The variants with 1 to 19 accepted pushes. If these have fewer than 20 together, the smallest of the others is
    /// among them, and also the last one that would be left. Absent if there are none.
    package var smallVariants: [SmallGroup]?
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
    /// The smallest difference, in percentage points, that this holdout can see. Absent if there is none.
    package var detectable: Double?
    /// The devices of both groups whose reports of the event name a push by `ref`. A device that was held out has no
    /// push to name, so the groups are not compared. Absent if there are none, and without a holdout.
    package var namedPush: Int?
    /// Whether the time has passed for all devices. Until then the interval is wider, and is that of the last look.
    package var isFinal: Bool
    /// `run` if the time in which events count begins with the start of the run. `wave` if it begins with the start of
    /// each device's wave.
    package var countedFrom: String
    /// The time from the start of the run to its end, or to the report while the run goes on. The final look counts
    /// `within_seconds` longer. 0 if the time begins with each wave.
    package var sendingSeconds: Int64
    /// The time after the start of the run, or of each device's wave, up to which events count, in seconds. 0 before
    /// the first look.
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
        countedFrom = look.followsClocks ? "wave" : "run"
        sendingSeconds = look.sending.components.seconds
        lookedAtSeconds = look.counted?.within.components.seconds ?? 0
        summary = ""
        if let removal {
            reportsDeletedAt = removal.removedAt.iso8601
            summary = GoalText(self, look).summary(removal)
            return
        }
        let hasValue = arms.treated.valueMicros != 0 || arms.heldOut.valueMicros != 0
        treatedValue = hasValue ? Double(arms.treated.valueMicros) / 1e6 : nil
        if hasHoldout {
            self.heldOut = FeedbackReport.Share(heldOut)
            heldOutValue = hasValue ? Double(arms.heldOut.valueMicros) / 1e6 : nil
            if arms.namedPush > 0 {
                namedPush = arms.namedPush
            } else {
                let points = PercentagePoints(treated, minus: heldOut, z: look.z)
                (difference, low, high, detectable) = (points.difference, points.low, points.high, points.detectable)
            }
        }
        summary = GoalText(self, look).summary
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

extension Proportion {
    init(_ arm: FeedbackArms.Arm) { self.init(arm.reached, of: arm.devices) }
}
