import Foundation
import Model
import Store
import Testing

@testable import Campaigns

/// What reports say, against the truth of simulated people.
@Suite(.timeLimit(.minutes(10)))
struct FeedbackTruthTests {
    private static let broadcasts = 1_000
    private static let devices = 2_000
    private static let hour = 3_600.0

    /// A split by the hash that the store uses, for one of many campaigns.
    private static func split(_ number: Int, heldOut: Double, variants: Int = 0) -> CampaignSplit {
        var campaign = Campaign(name: "broadcast-\(number)", topic: "a.b", pushType: .alert, template: "t")
        campaign.holdoutPercent = heldOut
        campaign.variants = (0..<variants).map { Campaign.Variant(name: "\($0)", weight: 1, template: "t") }
        return CampaignSplit(campaign)
    }

    /// The chance that a person does it within a time, if the chance within a day is `rate`: most do it soon.
    private static func chance(_ rate: Double, after seconds: Double) -> Double {
        rate * (1 - exp(-seconds / (6 * hour))) / (1 - exp(-4))
    }

    @Test func `intervals cover the truth in 94 to 96 of 100 broadcasts, and all early looks together in 95`() {
        var generator = SeededGenerator(seed: 20_261_127)
        let (rate, base) = (0.06, 0.05)
        let looks = [1.0, 2, 4, 8, 16].map { $0 * Self.hour }
        var covered = 0
        var coveredEarly = 0
        for number in 0..<Self.broadcasts {
            let split = Self.split(number, heldOut: 20)
            var arms = (treated: [Double](), heldOut: [Double]())
            for device in 1...Self.devices {
                let isHeldOut = split.isHeldOut(Int64(device))
                let own = Double.random(in: 0..<1, using: &generator)
                // The time at which the person does it, in seconds; never if it is beyond the day.
                let time = Self.time(of: own, rate: isHeldOut ? base : rate)
                if isHeldOut { arms.heldOut.append(time) } else { arms.treated.append(time) }
            }
            let interval = { (seconds: Double, z: Double) in
                RateDifference(
                    Proportion(arms.treated.count { $0 < seconds }, of: arms.treated.count),
                    minus: Proportion(arms.heldOut.count { $0 < seconds }, of: arms.heldOut.count), z: z)?.interval
            }
            if interval(24 * Self.hour, Proportion.z95)?.contains(rate - base) == true { covered += 1 }
            let areAllRight = looks.allSatisfy { seconds in
                let truth = Self.chance(rate, after: seconds) - Self.chance(base, after: seconds)
                return interval(seconds, FeedbackLook.earlyZ)?.contains(truth) == true
            }
            if areAllRight { coveredEarly += 1 }
        }
        print("final intervals cover in \(covered), all early looks in \(coveredEarly) of \(Self.broadcasts)")
        // 950 within three standard errors of this many broadcasts.
        #expect(930...970 ~= covered)
        #expect(coveredEarly >= 950 - 20)
    }

    /// Solves `chance(rate, after: time) = own`.
    private static func time(of own: Double, rate: Double) -> Double {
        guard own < rate else { return .infinity }
        return -6 * hour * log(1 - own / rate * (1 - exp(-4)))
    }

    @Test func `a winner is named wrongly in at most 5 of 100 broadcasts, and rightly when the texts differ enough`() {
        var generator = SeededGenerator(seed: 7)
        var (wrong, right, named) = (0, 0, 0)
        for number in 0..<Self.broadcasts {
            let split = Self.split(number, heldOut: 0, variants: 3)
            // In the first half of the broadcasts the texts are equally good, in the others the first is better.
            let rates = number < Self.broadcasts / 2 ? [0.1, 0.1, 0.1] : [0.16, 0.1, 0.1]
            var opened = [0, 0, 0]
            var sent = [0, 0, 0]
            for device in 1...Self.devices {
                let variant = split.variant(of: Int64(device)) ?? 0
                sent[variant] += 1
                if Double.random(in: 0..<1, using: &generator) < rates[variant] { opened[variant] += 1 }
            }
            let summary =
                VariantComparison((0..<3).map { (name: "v\($0)", share: Proportion(opened[$0], of: sent[$0])) }).summary
                ?? ""
            let hasWinner = !summary.hasPrefix("No winner yet")
            if number < Self.broadcasts / 2 {
                named += hasWinner ? 1 : 0
            } else if hasWinner {
                if summary.hasPrefix("v0 ") { right += 1 } else { wrong += 1 }
            }
        }
        print("winners of equal texts: \(named) of 500; of different ones: \(right) right, \(wrong) wrong of 500")
        #expect(named <= 25 && wrong == 0 && right > 300)
    }
}
