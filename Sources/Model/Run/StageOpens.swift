/// The opens of a stage at the end of its hold, compared with earlier runs. Everything that the verdict is based on is
/// here, so that it can be reproduced. It is stored as JSON: its coding keys never change.
package struct StageOpens: Hashable, Sendable, Codable {
    /// An earlier run at the same age.
    package struct Earlier: Hashable, Sendable, Codable {
        package var run: Int64
        package var opened: Int
        package var accepted: Int

        private enum CodingKeys: String, CodingKey {
            case run = "run", opened = "opened", accepted = "accepted"
        }

        package init(run: Int64, opened: Int, accepted: Int) {
            self.run = run
            self.opened = opened
            self.accepted = accepted
        }
    }

    package var at: Timestamp
    package var opened: Int
    package var accepted: Int
    /// Opens count up to this age, in minutes since the push was accepted.
    package var minutes: Int
    /// The lowest share of opens that passes, in percent of the usual share.
    package var atLeastPercent: Double
    /// The runs that tell the usual share. Empty if no earlier run has feedback: the stage then passes.
    package var earlier: [Earlier]
    /// Whether ``earlier`` has runs of the app's other campaigns, because the campaign has none.
    package var isOfApp: Bool

    private enum CodingKeys: String, CodingKey {
        case at = "at", opened = "opened", accepted = "accepted", minutes = "minutes"
        case atLeastPercent = "atLeastPercent", earlier = "earlier", isOfApp = "isOfApp"
    }

    package init(
        at moment: Timestamp, opened: Int, accepted: Int, minutes: Int, atLeastPercent: Double, earlier: [Earlier],
        isOfApp: Bool
    ) {
        at = moment
        self.opened = opened
        self.accepted = accepted
        self.minutes = minutes
        self.atLeastPercent = atLeastPercent
        self.earlier = earlier
        self.isOfApp = isOfApp
    }

    /// The usual share of opens, from 0 to 1: the median of the earlier runs, so that one unusual run changes little.
    /// `nil` without such runs.
    package var usual: Double? {
        let rates = earlier.compactMap { Proportion($0.opened, of: $0.accepted).rate }.sorted()
        guard !rates.isEmpty else { return nil }
        let middle = rates.count / 2
        return rates.count % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2
    }

    /// The lowest share of opens that passes, from 0 to 1.
    package var limit: Double? { usual.map { $0 * atLeastPercent / 100 } }
}

/// The decision which variant the rest of an audience gets, with its counts, so that it can be reproduced. It is stored
/// as JSON: its coding keys never change.
package struct VariantDecision: Hashable, Sendable, Codable {
    /// The devices of one variant in the stage that decides.
    package struct Count: Hashable, Sendable, Codable {
        package var accepted: Int
        /// The devices among them that opened the push, or did what the campaign is for.
        package var reached: Int

        private enum CodingKeys: String, CodingKey {
            case accepted = "accepted", reached = "reached"
        }

        package init(accepted: Int = 0, reached: Int = 0) {
            self.accepted = accepted
            self.reached = reached
        }
    }

    package enum Cause: String, Hashable, Sendable, Codable, CaseIterable {
        /// The comparison shows that the variant is better than each other one.
        case winner
        /// The comparison shows no winner, and the campaign then takes the first variant.
        case first
        /// The comparison shows no winner, and a person chose.
        case person
    }

    package var at: Timestamp
    package var by: VariantRule.Measure
    /// In the order of the campaign's variants.
    package var counts: [Count]
    /// An index into the campaign's variants. `nil` while a person has to choose.
    package var variant: Int?
    package var cause: Cause?
    /// The person who chose.
    package var person: String?

    private enum CodingKeys: String, CodingKey {
        case at = "at", by = "by", counts = "counts", variant = "variant", cause = "cause", person = "person"
    }

    /// Compares the variants.
    package init(_ rule: VariantRule, _ counts: [Count], at moment: Timestamp) {
        at = moment
        by = rule.by
        self.counts = counts
        if let winner = ranking.winner {
            (variant, cause) = (winner, .winner)
        } else if rule.undecided == .first {
            (variant, cause) = (0, .first)
        }
    }

    /// Records what a person chose.
    package mutating func choose(_ chosen: Int, by actor: Actor) {
        (variant, cause, person) = (chosen, .person, actor.name)
    }

    package var ranking: VariantRanking { VariantRanking(counts.map { Proportion($0.reached, of: $0.accepted) }) }

    /// Whether the counts lead to the decision.
    package func isConfirmed(by rule: VariantRule) -> Bool {
        guard counts.allSatisfy({ 0...max(0, $0.accepted) ~= $0.reached }) else { return false }
        var again = VariantDecision(rule, counts, at: at)
        if again.variant == nil, cause == .person, let variant, counts.indices.contains(variant), person != nil {
            (again.variant, again.cause, again.person) = (variant, .person, person)
        }
        return again == self
    }
}
