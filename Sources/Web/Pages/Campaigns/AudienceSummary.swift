import Campaigns
import Model

/// An audience as pages show it: a sentence, or its text as code if there is no sentence.
struct AudienceSummary: Sendable {
    var sentence: String?
    var code: String?

    /// - Parameters:
    ///   - source: the expression as its author wrote it; empty for every device.
    ///   - sql: the query that selects the devices in place of an expression.
    init(source: String, sql: String?) {
        if let sql {
            code = sql
        } else if source.isEmpty {
            sentence = AudienceSentence(.everyone)?.text
        } else {
            let expression = try? ExpressionText.parse(source, named: "audience")
            sentence = expression.flatMap(AudienceSentence.init)?.text
            code = sentence == nil ? source : nil
        }
    }

    init(_ campaign: Campaign) {
        (sentence, code) = campaign.audienceSummary
    }
}

extension PlanView.Fact {
    init(audience: AudienceSummary) {
        self.init(name: "Audience", value: audience.sentence ?? "", code: audience.code)
    }
}
