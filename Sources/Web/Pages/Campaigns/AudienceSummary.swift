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
        let expression = source.isEmpty ? .everyone : try? ExpressionText.parse(source, named: "audience")
        (sentence, code) = AudienceSentence.summary(of: expression, source: source, sql: sql)
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
