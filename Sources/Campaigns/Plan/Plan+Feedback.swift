import Foundation
import Model
import Platform

extension Plan {
    /// The share that does something without the push, for the forecast of what a holdout can see.
    private static let usualShare = 0.05

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
        if let seen = RateDifference.detectable(treated: reach.total, heldOut: heldOut, base: Self.usualShare) {
            let points = String(format: "%.2f", seen * 100)
            parts.append(
                "\(heldOut.counted("device")) held out: of something that 5% do anyway, this shows a change of "
                    + "\(points) points or more")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ". ")
    }

    private static let referenceBytes =
        ",\"\(CampaignFeedback.payloadKey)\":{\"r\":\"\"}".utf8.count + PushReference.textCount
}
