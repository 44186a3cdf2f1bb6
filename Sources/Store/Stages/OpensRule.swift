package import Model

/// The rule that compares the opens of a stage with those of earlier runs.
package enum OpensRule {
    /// The maximum probability that a run halts although its texts are opened as often as the limit says. All checks of
    /// a run share it.
    package static let falseHaltMax = 0.001
    /// The minimum number of accepted pushes of a run that counts as history.
    package static let acceptedMin = 200

    /// Returns the age up to which opens count for a hold, in minutes. It is the start of an interval of
    /// ``FeedbackMinute``, because earlier runs are counted by these intervals.
    package static func minutes(_ hold: Duration) -> Int { FeedbackMinute.of(hold) }

    /// Returns whether so few opens are unlikely at the limit: their probability, or that of fewer, is at most
    /// ``falseHaltMax``. The test is exact, so it also holds for a few opens.
    package static func isTooLow(_ opens: StageOpens, in stages: [Stage]) -> Bool {
        guard let limit = opens.limit, limit > 0 else { return false }
        let checks = stages.count { $0.opensAtLeastPercent != nil }
        return UpperBound.isBelow(
            min(limit, 1), answers: opens.accepted, failures: opens.opened,
            wrongMax: falseHaltMax / Double(max(1, checks)))
    }
}

/// The event that is counted for the devices of a stage.
package enum StageGoal: Hashable, Sendable {
    /// A direct open of the push within a time after it was accepted; `nil` for any time.
    case opened(within: Duration?)
    case converted(Conversion)

    package init?(_ rule: VariantRule, _ campaign: Campaign) {
        switch rule.by {
        case .opens: self = .opened(within: nil)
        case .conversion:
            guard let conversion = campaign.conversion else { return nil }
            self = .converted(conversion)
        }
    }
}
