import Model

/// The opens of a stage, compared with earlier runs: part of the stable shape of a stage.
package struct OpensResult: Codable, Hashable, Sendable {
    package var opened: Int
    package var accepted: Int
    /// Opens count up to this age of the push.
    package var withinMinutes: Int
    /// The usual share, and the lowest one that passes, in percent. Absent if no earlier run tells what is usual: the
    /// stage then passes.
    package var usual: Double?
    package var least: Double?
    /// The runs that tell what is usual.
    package var runs: [Int64]
    /// Whether these are runs of the app's other campaigns.
    package var otherCampaigns: Bool
    package var at: String

    init(_ opens: StageOpens) {
        (opened, accepted, withinMinutes) = (opens.opened, opens.accepted, opens.minutes)
        (usual, least) = (opens.usual.map(FeedbackReport.Share.percent), opens.limit.map(FeedbackReport.Share.percent))
        (runs, otherCampaigns, at) = (opens.earlier.map(\.run), opens.isOfApp, opens.at.iso8601)
    }
}

/// The decision which variant the rest of the audience gets: part of the stable shape of a stage.
package struct VariantDecisionResult: Codable, Hashable, Sendable {
    /// `opens` or `conversion`.
    package var by: String
    /// The devices of each variant that did so, of those that the push was accepted for.
    package var counts: [FeedbackReport.Named]
    /// The variant with the largest share.
    package var best: String
    /// The difference to the second one in percentage points, with all comparisons right with a probability of at least
    /// 95 %. Absent if no push of a variant was accepted.
    package var low: Double?
    package var high: Double?
    /// The variant of the rest. Absent while a person has to choose.
    package var variant: String?
    /// `winner`, `first` or `person`. Absent while a person has to choose.
    package var cause: String?
    package var person: String?
    package var at: String
    /// The decision in words.
    package var summary: String

    init(_ decided: VariantDecision, _ names: [String], _ summary: String) {
        by = decided.by.rawValue
        counts = zip(names, decided.counts).map { name, count in
            FeedbackReport.Named(
                name: name, share: FeedbackReport.Share(Proportion(count.reached, of: count.accepted)))
        }
        let ranking = decided.ranking
        best = ranking.order.first.flatMap { names.indices.contains($0) ? names[$0] : nil } ?? ""
        low = ranking.closest.map { PercentagePoints.points($0.interval.lowerBound) }
        high = ranking.closest.map { PercentagePoints.points($0.interval.upperBound) }
        variant = decided.variant.flatMap { names.indices.contains($0) ? names[$0] : nil }
        (cause, person, at) = (decided.cause?.rawValue, decided.person, decided.at.iso8601)
        self.summary = summary
    }
}
