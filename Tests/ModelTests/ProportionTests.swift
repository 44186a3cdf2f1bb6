import Model
import Testing

/// The figures of the statistics. The truth is computed by other means: exact sums over binomial distributions.
@Suite(.timeLimit(.minutes(5)))
struct ProportionTests {
    /// The published example of Newcombe (1998), table II: 56 of 70 and 48 of 80.
    @Test func `the published example comes out`() throws {
        let difference = try #require(RateDifference(Proportion(56, of: 70), minus: Proportion(48, of: 80)))
        #expect(abs(difference.difference - 0.2) < 1e-12)
        #expect(abs(difference.interval.lowerBound - 0.0524) < 0.00005)
        #expect(abs(difference.interval.upperBound - 0.3339) < 0.00005)
        #expect(difference.isCertain)
        // The same table, example d: 9 of 10 and 3 of 10, and h: 10 of 10 and 0 of 10.
        let small = try #require(RateDifference(Proportion(9, of: 10), minus: Proportion(3, of: 10)))
        #expect(abs(small.interval.lowerBound - 0.1705) < 0.00005 && abs(small.interval.upperBound - 0.8090) < 0.00005)
        let whole = try #require(RateDifference(Proportion(10, of: 10), minus: Proportion(0, of: 20)))
        #expect(abs(whole.interval.lowerBound - 0.6791) < 0.00005 && whole.interval.upperBound == 1)
    }

    @Test func `no devices say nothing, and the observed share is always inside`() {
        #expect(RateDifference(Proportion(0, of: 0), minus: Proportion(1, of: 2)) == nil)
        #expect(Proportion(0, of: 0).rate == nil && Proportion(0, of: 0).interval() == 0...1)
        for total in [1, 2, 7, 100, 1_000_000] {
            for count in Set([0, 1, total / 2, total - 1, total]) {
                let proportion = Proportion(count, of: total)
                #expect(proportion.interval().contains(Double(count) / Double(total)))
            }
        }
    }

    /// The probabilities that a binomial variable has each value.
    private static func binomial(_ total: Int, _ share: Double) -> [Double] {
        var masses = [Double](repeating: 0, count: total + 1)
        let mode = Int(Double(total) * share)
        masses[mode] = 1
        let odds = share / (1 - share)
        for value in stride(from: mode, to: 0, by: -1) {
            masses[value - 1] = masses[value] * Double(value) / Double(total - value + 1) / odds
        }
        for value in mode..<total {
            masses[value + 1] = masses[value] * Double(total - value) / Double(value + 1) * odds
        }
        let sum = masses.reduce(0, +)
        return masses.map { $0 / sum }
    }

    /// Exact coverage: the sum of the probabilities of all outcomes whose interval contains the true difference.
    @Test(arguments: [
        (950, 50, 0.02, 0.02), (1_900, 100, 0.05, 0.045), (9_500, 500, 0.004, 0.003), (500, 500, 0.3, 0.33),
        (19_000, 1_000, 0.002, 0.001),
    ])
    func `intervals cover the truth in 93 to 98 percent, also for rare events`(
        treated: Int, heldOut: Int, rate: Double, base: Double
    ) {
        let (ours, theirs) = (Self.binomial(treated, rate), Self.binomial(heldOut, base))
        var covered = 0.0
        for (count, mass) in ours.enumerated() where mass > 1e-9 {
            for (other, otherMass) in theirs.enumerated() where otherMass > 1e-9 {
                let difference = RateDifference(Proportion(count, of: treated), minus: Proportion(other, of: heldOut))
                if difference?.interval.contains(rate - base) == true { covered += mass * otherMass }
            }
        }
        #expect(0.93...0.98 ~= covered, "covered \(covered)")
    }

    @Test func `what a holdout can see is what the tables of power say`() throws {
        let million = try #require(RateDifference.detectable(treated: 950_000, heldOut: 50_000, base: 0.05))
        #expect(abs(million - 0.0028) < 0.00005)
        let small = try #require(RateDifference.detectable(treated: 99_000, heldOut: 1_000, base: 0.01))
        #expect(abs(small - 0.0089) < 0.0001)
        #expect(RateDifference.detectable(treated: 10, heldOut: 0, base: 0.1) == nil)
    }
}
