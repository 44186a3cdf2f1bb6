import Foundation
import Model
import Platform

extension Plan {
    /// The share that does something without the push, for the forecast of what a holdout can see.
    static let usualShare = 0.05

    /// What the run will tell about people: the size of the reference, and the difference that the holdout can see.
    /// `nil` if the campaign asks for neither.
    package var feedbackSummary: String? {
        let campaign = definition.campaign
        var parts: [String] = []
        if let feedback = campaign.feedback {
            let size = "each payload carries a reference of \(Self.referenceBytes) bytes"
            let asked = feedback.arrivalsPercent.map { "; \($0)% of the devices report the arrival" } ?? ""
            parts.append(size + asked)
        }
        let heldOut = reach.suppressed[.holdout] ?? 0
        if heldOut > 0, reach.total > 0 {
            let seen = RateDifference.detectable(treated: reach.total, heldOut: heldOut, base: Self.usualShare)
            let change = seen.map { String(format: "a change of %.2f points or more in 80 of 100 runs", $0 * 100) }
            parts.append(
                "\(heldOut.counted("device")) held out: of something that 5% do anyway, this shows "
                    + (change ?? "no change reliably, because the groups are too small"))
        }
        return parts.isEmpty ? nil : parts.joined(separator: ". ")
    }

    private static let referenceBytes =
        ",\"\(CampaignFeedback.payloadKey)\":{\"r\":\"\"}".utf8.count + PushReference.textCount
}

extension Plan {
    /// The hours of the devices, in words. `nil` for a run without `best_hour`.
    package var bestHourSummary: String? {
        guard let hours = definition.bestHours, let found = reach.bestHour else { return nil }
        let days = WrittenDuration.text(BestHour.history)
        let usual = ClockHour.text(found.usual.hour)
        let band = ClockHour.text(hours)
        guard found.usual.basis == .app else {
            return
                "\(band); no opens in these hours were reported in the last \(days), so each device gets the push at "
                + usual
        }
        return "\(band); the app is opened most at \(usual) (from \(found.opens.counted("open")) in the last \(days)). "
            + "\(found.ownHours.counted("device")) \(found.ownHours == 1 ? "has an hour of its" : "have an hour of their") "
            + "own. For comparison, own hours apply to half of the audience; all other devices get the push at \(usual)"
    }

    /// The wave with the most devices, in words. `nil` for a run without `best_hour`.
    package var surgeSummary: String? {
        guard reach.bestHour != nil, let largest = waves.max(by: { $0.devices < $1.devices }) else { return nil }
        return "\(largest.devices.counted("device")) at \(largest.startsAt.iso8601)"
            + (largest.rate.map { ", at \(Int($0.rounded()).grouped)/s" } ?? "")
    }
}

/// An hour of the day as people write it, such as `09:00`.
package enum ClockHour {
    package static func text(_ hours: Range<Int>) -> String { "\(text(hours.lowerBound)) to \(text(hours.upperBound))" }

    package static func text(_ hour: Int) -> String { hour < 10 ? "0\(hour):00" : "\(hour):00" }
}
