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
        // In large groups the normal distribution is nearly exact.
        let million = try #require(RateDifference.detectable(treated: 950_000, heldOut: 50_000, base: 0.05))
        #expect(abs(million - 0.0028) < 0.0001)
        #expect(RateDifference.detectable(treated: 10, heldOut: 0, base: 0.1) == nil)
        // The largest difference of two devices is no evidence.
        #expect(RateDifference.detectable(treated: 1, heldOut: 1, base: 0.1) == nil)
        let rare = try #require(RateDifference.detectable(treated: 6_785, heldOut: 1_215, base: 0))
        #expect(abs(rare - 0.0040) < 0.0001)
        let common = try #require(RateDifference.detectable(treated: 6_785, heldOut: 1_215, base: 1))
        #expect(common == rare)
    }

    /// A decision by the interval, in simulated broadcasts.
    @Test(arguments: [
        (6_785, 1_215, 0.01), (7_840, 160, 0.01), (9_800, 200, 0.001), (98_000, 2_000, 0.001), (2_000, 2_000, 0.05),
        (200, 9_800, 0.05), (50, 50, 0.2), (950_000, 50_000, 0.05),
    ])
    func `a comparison shows the detectable difference in 80 of 100 broadcasts`(
        treated: Int, heldOut: Int, base: Double
    ) throws {
        var generator = SeededGenerator(seed: UInt64(treated + heldOut))
        let seen = try #require(RateDifference.detectable(treated: treated, heldOut: heldOut, base: base))
        let (ours, theirs) = (Self.sums(treated, base + seen), Self.sums(heldOut, base))
        let broadcasts = 4_000
        let shown = (0..<broadcasts).count { _ in
            let found = RateDifference(
                Proportion(Self.random(ours, &generator), of: treated),
                minus: Proportion(Self.random(theirs, &generator), of: heldOut))
            return found.map { $0.interval.lowerBound > 0 } ?? false
        }
        // Three standard deviations of the simulation are 1.9 %.
        #expect(0.78...0.82 ~= Double(shown) / Double(broadcasts), "\(shown) of \(broadcasts) with \(seen)")
    }

    private static func sums(_ total: Int, _ share: Double) -> [Double] {
        var sum = 0.0
        return binomial(total, share).map { mass in
            sum += mass
            return sum
        }
    }

    /// Returns a count with the probability that the sums of a distribution give it.
    private static func random(_ sums: [Double], _ generator: inout SeededGenerator) -> Int {
        let wanted = Double.random(in: 0..<1, using: &generator)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > wanted { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
