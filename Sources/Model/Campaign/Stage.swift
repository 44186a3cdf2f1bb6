/// A part of a run that must pass an evaluation before the next part is sent.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys never change.
package struct Stage: Hashable, Sendable, Codable {
    package enum Members: Hashable, Sendable, Codable {
        /// Devices selected by name, usually those of the campaign's authors. They need not be in its audience.
        case seeds(AudienceExpression)
        /// Percent of the audience, a sample: see ``StageSample``.
        case share(Double)
        /// All devices that are in no earlier stage.
        case rest

        private enum CodingKeys: String, CodingKey {
            case seeds = "seeds", share = "share", rest = "rest"
        }
    }

    /// The tolerated percentage of failures if the file does not state one.
    package static let toleratePercentUsual = 5.0
    package static let countMax = 20
    /// The maximum number of seeds in one stage. A larger group no longer consists of known people.
    package static let seedsMax = 1_000
    /// The maximum share of seeds in one stage, for a run with more devices than ``seedsFreely``.
    package static let seedsShareMax = 0.5
    package static let seedsFreely = 100

    package var members: Members
    /// The waiting time between the stage's last response and the next stage, for people to check the result.
    package var hold: Duration?
    /// The tolerated percentage of failures. `nil` for ``toleratePercentUsual``.
    package var toleratePercent: Double?
    /// Whether a person must approve the stage before it begins.
    package var needsApproval: Bool
    /// The lowest share of direct opens at the end of the hold, in percent of the usual share. With a lower one the run
    /// halts. `nil` for no check.
    package var opensAtLeastPercent: Double?
    /// How the stage decides which variant the rest gets. `nil` if every device keeps its own variant.
    package var decides: VariantRule?

    private enum CodingKeys: String, CodingKey {
        case members = "members", hold = "hold", toleratePercent = "toleratePercent", needsApproval = "needsApproval"
        case opensAtLeastPercent = "opensAtLeastPercent", decides = "decides"
    }

    package init(
        _ members: Members, hold: Duration? = nil, toleratePercent: Double? = nil, needsApproval: Bool = false,
        opensAtLeastPercent: Double? = nil, decides: VariantRule? = nil
    ) {
        self.opensAtLeastPercent = opensAtLeastPercent
        self.decides = decides
        self.members = members
        self.hold = hold
        self.toleratePercent = toleratePercent
        self.needsApproval = needsApproval
    }

    /// - Parameter audience: the number of all devices of the run, including the seeds.
    package static func isTooMany(seeds: Int, of audience: Int) -> Bool {
        seeds > seedsMax || audience > seedsFreely && Double(seeds) > seedsShareMax * Double(audience)
    }

    /// Returns the number of devices up to which the audience must be counted to evaluate ``isTooMany(seeds:of:)``.
    package static func audienceCounted(forSeeds seeds: Int) -> Int {
        max(seedsFreely, Int((Double(seeds) / seedsShareMax).rounded(.up))) + 1
    }

    /// The tolerated share of failures, from 0 to 1.
    package var tolerated: Double { (toleratePercent ?? Self.toleratePercentUsual) / 100 }

    /// Whether APNs must accept every push of the stage. This applies to seeds without a tolerance, which are too few
    /// for percentages.
    package var passesAsWhole: Bool { seeds != nil && toleratePercent == nil }

    package var seeds: AudienceExpression? {
        guard case .seeds(let expression) = members else { return nil }
        return expression
    }

    /// A short name: `seeds`, `1 %`, `the rest`.
    package var summary: String {
        switch members {
        case .seeds: "seeds"
        case .share(let percent): (percent * 10).rounded() == percent * 10 ? percent.percentText : "\(percent) %"
        case .rest: "the rest"
        }
    }
}

extension Campaign {
    /// The seeds of each stage that has seeds, with the stage's number, from 1.
    package var seeds: [(stage: Int, members: AudienceExpression)] {
        (stages ?? []).enumerated().compactMap { index, stage in stage.seeds.map { (index + 1, $0) } }
    }

    /// The index of the stage that decides which variant the rest gets. `nil` if every device keeps its own variant.
    package var decidingStage: Int? { stages?.firstIndex { $0.decides != nil } }
    /// Whether a stage is judged by what people do with the pushes.
    package var goesByFeedback: Bool {
        stages?.contains { $0.decides != nil || $0.opensAtLeastPercent != nil } ?? false
    }
}
