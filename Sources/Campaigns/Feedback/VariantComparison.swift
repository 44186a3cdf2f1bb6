import Foundation
import Model

/// What the opens say about the variants of a campaign.
struct VariantComparison {
    /// The probability with which one of several looks at equal texts shows a winner.
    private static let earlyWrongMax = 0.005

    private let variants: [(name: String, opened: Proportion)]
    private let isEarly: Bool
    private let leavesOut: Bool

    /// - Parameters:
    ///   - variants: the variants whose opens are shown.
    ///   - leavesOut: whether the campaign has others, too.
    init(_ variants: [(name: String, share: Proportion)], isEarly: Bool = false, leavesOut: Bool = false) {
        self.isEarly = isEarly
        self.leavesOut = leavesOut
        self.variants = variants.map { (name: $0.name, opened: $0.share) }
    }

    /// A sentence that names the winner, or says that there is none yet. `nil` for fewer than two variants.
    var summary: String? { comparison.map { $0 + (leavesOut ? Self.leftOut : "") } }

    private static let leftOut = "; variants whose opens are not shown are not compared"

    private var comparison: String? {
        guard variants.count > 1 else { return nil }
        let ranking = VariantRanking(
            variants.map(\.opened), wrongMax: isEarly ? Self.earlyWrongMax : VariantRanking.wrongMax)
        let (best, second) = (variants[ranking.order[0]], variants[ranking.order[1]])
        guard ranking.winner != nil, let closest = ranking.closest else {
            let names = [best.name] + ranking.undecided.map { variants[$0].name }
            let others = names.dropLast().joined(separator: ", ")
            return "No winner yet: the opens of \(others) and \(names.last ?? "") may differ by chance"
        }
        let (low, high) = (closest.interval.lowerBound * 100, closest.interval.upperBound * 100)
        let early = isEarly ? "; an early result" : ""
        guard variants.count > 2 else {
            return String(
                format: "%@ was opened more often, by %.1f to %.1f percentage points, than %@", best.name, low, high,
                second.name) + early
        }
        return String(
            format: "%@ was opened more often than each other variant: by %.1f to %.1f percentage points than %@, the "
                + "next one", best.name, low, high, second.name) + early
    }
}
