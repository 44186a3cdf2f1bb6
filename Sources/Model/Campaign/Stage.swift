/// A part of a run that must prove itself before the rest goes.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys never change.
package struct Stage: Hashable, Sendable, Codable {
    package enum Members: Hashable, Sendable, Codable {
        /// Devices known by name, usually of the people who made the campaign; they need not be in its audience.
        case seeds(AudienceExpression)
        /// Percent of the audience, a sample: see ``StageSample``.
        case share(Double)
        /// Everybody who is in no stage before.
        case rest

        private enum CodingKeys: String, CodingKey {
            case seeds = "seeds", share = "share", rest = "rest"
        }
    }

    /// The share of failures that is put up with where the file does not say.
    package static let toleratePercentUsual = 5.0
    package static let countMax = 20
    /// More than this are no longer people one knows.
    package static let seedsMax = 10_000

    package var members: Members
    /// How long after its last answer the next stage waits, for people to look.
    package var hold: Duration?
    /// Percent of failures put up with; nil: ``toleratePercentUsual``.
    package var toleratePercent: Double?
    /// A person has to approve of it before it begins.
    package var needsApproval: Bool

    private enum CodingKeys: String, CodingKey {
        case members = "members", hold = "hold", toleratePercent = "toleratePercent", needsApproval = "needsApproval"
    }

    package init(
        _ members: Members, hold: Duration? = nil, toleratePercent: Double? = nil, needsApproval: Bool = false
    ) {
        self.members = members
        self.hold = hold
        self.toleratePercent = toleratePercent
        self.needsApproval = needsApproval
    }

    /// From 0 to 1.
    package var tolerated: Double { (toleratePercent ?? Self.toleratePercentUsual) / 100 }

    /// It is of people one knows, and too small for shares to mean anything: each has to be accepted.
    package var passesAsWhole: Bool { seeds != nil && toleratePercent == nil }

    package var seeds: AudienceExpression? {
        guard case .seeds(let expression) = members else { return nil }
        return expression
    }

    /// As people speak of it: `seeds`, `1 %`, `the rest`.
    package var words: String {
        switch members {
        case .seeds: "seeds"
        case .share(let percent): (percent * 10).rounded() == percent * 10 ? percent.percentText : "\(percent) %"
        case .rest: "the rest"
        }
    }
}
