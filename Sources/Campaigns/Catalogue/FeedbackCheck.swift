import CampaignFiles
import Model

/// The rules between a campaign's `feedback` and its templates.
enum FeedbackCheck {
    static func problems(_ campaign: Campaign, _ templates: [Template], _ path: String) -> [Diagnostic] {
        guard let feedback = campaign.feedback else { return [] }
        var problems: [Diagnostic] = []
        if !campaign.pushType.canHaveFeedback {
            problems.append(
                Diagnostic(
                    path: path, what: "feedback with push_type \(campaign.pushType.rawValue)",
                    advice: "remove feedback; apps can report only about alert and background pushes"))
        }
        for template in templates {
            if hasOwnKey(template) {
                problems.append(
                    Diagnostic(
                        path: path,
                        what: "feedback uses the custom key \"\(CampaignFeedback.payloadKey)\", which the template "
                            + "\(template.name) has, too", advice: "rename the key of the template"))
            }
            if feedback.arrivalsPercent ?? 0 > 0, campaign.pushType == .alert, !template.mutableContent {
                problems.append(
                    Diagnostic(
                        path: path, severity: .warning,
                        what: "no device reports the arrival: the template \(template.name) has no mutable_content",
                        advice: "add mutable_content: true to the template, or remove arrivals"))
            }
        }
        return problems
    }

    /// Returns whether the template itself has the key of the payload that holds the reference.
    static func hasOwnKey(_ template: Template) -> Bool {
        template.custom.contains { $0.key == CampaignFeedback.payloadKey }
    }
}
