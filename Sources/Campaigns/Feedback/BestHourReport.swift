import Model
import Store

/// A comparison of the devices that were assigned to their own hour with those that were assigned to the app's hour.
/// Devices without an hour of their own are in both groups.
package struct BestHourReport: Codable, Hashable, Sendable {
    /// The time after a device's turn within which an open counts.
    static let within: Duration = .seconds(86_400)

    /// The seed of the split, see ``CampaignSplit``. Devices with a bucket below 5000 were assigned to their own hour.
    package var seed: Int64
    package var withinSeconds: Int64
    /// The opens at the devices' own hours.
    package var ownHour: FeedbackReport.Share
    /// The opens at the app's hour.
    package var usualHour: FeedbackReport.Share
    /// Own hours minus the app's hour, in percentage points, and its interval (Newcombe).
    package var difference: Double?
    package var low: Double?
    package var high: Double?
    /// The smallest difference, in percentage points, that these groups can show. Absent if there is none.
    package var detectable: Double?
    /// Whether the time has passed for all devices. Until then the interval is wider, and is that of the last look.
    package var isFinal: Bool
    /// The time after a device's turn up to which opens count, in seconds. 0 before the first look.
    package var lookedAtSeconds: Int64
    /// As in ``GoalReport``.
    package var reportsDeletedAt: String?
    package var summary: String

    /// Returns `nil` for a run without `best_hour`.
    static func look(at run: Run, now: Timestamp, prunedAt: Timestamp? = nil) -> FeedbackLook? {
        guard run.definition.bestHours != nil else { return nil }
        return FeedbackLook(
            FeedbackGoal(kind: .opened, within: within), run, now: now, waitsForAll: true, prunedAt: prunedAt)
    }

    init(_ look: FeedbackLook, _ arms: FeedbackArms, of campaign: Campaign, removal: FeedbackRemoval? = nil) {
        seed = CampaignSplit(campaign).bestHourSeed
        withinSeconds = look.goal.within.components.seconds
        let (own, usual) = (Proportion(arms.ownHour), Proportion(arms.usualHour))
        (ownHour, usualHour) = (FeedbackReport.Share(own), FeedbackReport.Share(usual))
        isFinal = look.isFinal
        lookedAtSeconds = look.counted?.within.components.seconds ?? 0
        summary = ""
        if let removal {
            reportsDeletedAt = removal.removedAt.iso8601
            summary = GoalText.deleted(removal)
            return
        }
        let points = PercentagePoints(own, minus: usual, z: look.z)
        (difference, low, high, detectable) = (points.difference, points.low, points.high, points.detectable)
        summary = look.obstacle ?? sentence
    }

    private var sentence: String {
        guard isFinal || lookedAtSeconds > 0 else {
            return "the first figures come when all devices have had the push for an hour"
        }
        guard let difference, let low, let high else { return GoalText.noDevices }
        let within = WrittenDuration.text(.seconds(lookedAtSeconds))
        let compared =
            "\(GoalText.share(ownHour)) opened it within \(within) after a push at their own hour, "
            + "\(GoalText.share(usualHour)) after a push at the app's hour. "
        let interval = "(\(GoalText.points(low)) to \(GoalText.points(high)) points)"
        let finding =
            low > 0
            ? "Own hours help: the share of opens is \(GoalText.points(difference)) points higher \(interval)"
            : high < 0
                ? "Own hours do harm: the share of opens is \(GoalText.points(-difference)) points lower \(interval)"
                : "It is unclear whether own hours help: chance alone may explain the difference \(interval)"
        let power = detectable.map {
            "; in 80 of 100 such runs these groups show a difference of \(GoalText.points($0)) points or more"
        }
        let early =
            isFinal ? "" : "; an early result, \(WrittenDuration.text(.seconds(lookedAtSeconds))) after each push"
        return compared + finding + (power ?? "") + early
    }
}
