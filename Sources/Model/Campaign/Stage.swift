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
    /// Seeds of one stage, at most: more are no longer people one knows.
    package static let seedsMax = 1_000
    /// Of a run for more devices than ``seedsFreely`` the seeds of one stage are this share, at most.
    package static let seedsShareMax = 0.5
    package static let seedsFreely = 100

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

    /// - Parameter audience: all the run is for, the seeds among them.
    package static func isTooMany(seeds: Int, of audience: Int) -> Bool {
        seeds > seedsMax || audience > seedsFreely && Double(seeds) > seedsShareMax * Double(audience)
    }

    /// Of how many devices it has to be known that there are so many, before ``isTooMany(seeds:of:)`` can be answered.
    package static func audienceCounted(forSeeds seeds: Int) -> Int {
        max(seedsFreely, Int((Double(seeds) / seedsShareMax).rounded(.up))) + 1
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

extension Campaign {
    /// Of each stage that is for seeds: its number, from 1, and who they are.
    package var seeds: [(stage: Int, members: AudienceExpression)] {
        (stages ?? []).enumerated().compactMap { index, stage in stage.seeds.map { (index + 1, $0) } }
    }
}
