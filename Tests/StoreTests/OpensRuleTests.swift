import Model
import Store
import Testing

/// The verdict on a stage's opens, and the decision which variant the rest gets.
@Suite struct OpensRuleTests {
    private static let stages = [
        Stage(.share(5), hold: .seconds(1800), opensAtLeastPercent: 50), Stage(.rest),
    ]
    private static let moment = Timestamp(seconds: 0)

    private static func opens(_ opened: Int, of accepted: Int, usual: [(Int, Int)]) -> StageOpens {
        StageOpens(
            at: moment, opened: opened, accepted: accepted, minutes: 30, atLeastPercent: 50,
            earlier: usual.enumerated().map { StageOpens.Earlier(run: Int64($0), opened: $1.0, accepted: $1.1) },
            isOfApp: false)
    }

    private static func random(_ count: Int, _ rate: Double, _ generator: inout SeededGenerator) -> Int {
        (0..<count).reduce(0) { sum, _ in sum + (Double.random(in: 0..<1, using: &generator) < rate ? 1 : 0) }
    }

    @Test(
        arguments: [
            // 5 % is usual, so the limit is 2.5 %.
            (0, 200, [(50, 1_000)], false), (0, 300, [(50, 1_000)], true), (10, 1_000, [(50, 1_000)], true),
            (14, 1_000, [(50, 1_000)], false), (50, 1_000, [(50, 1_000)], false),
            // One run without opens does not change what is usual.
            (0, 300, [(0, 1_000), (50, 1_000), (60, 1_000)], true),
            (0, 300, [(0, 1_000), (0, 1_000), (60, 1_000)], false),
            (0, 5_000, [], false), (0, 0, [(50, 1_000)], false),
        ] as [(Int, Int, [(Int, Int)], Bool)])
    func `opens halt a run if so few are unlikely`(
        opened: Int, accepted: Int, usual: [(Int, Int)], isTooLow: Bool
    ) {
        #expect(OpensRule.isTooLow(Self.opens(opened, of: accepted, usual: usual), in: Self.stages) == isTooLow)
    }

    @Test func `a run at the limit is halted in at most 1 of 1,000 cases, and a broken link nearly always`() {
        var generator = SeededGenerator(seed: 11)
        var (halted, missed) = (0, 0)
        for _ in 0..<20_000 {
            let atLimit = Self.opens(Self.random(400, 0.05, &generator), of: 400, usual: [(100, 1_000)])
            halted += OpensRule.isTooLow(atLimit, in: Self.stages) ? 1 : 0
        }
        for _ in 0..<2_000 {
            let broken = Self.opens(Self.random(400, 0.005, &generator), of: 400, usual: [(100, 1_000)])
            missed += OpensRule.isTooLow(broken, in: Self.stages) ? 0 : 1
        }
        print("halted at the limit: \(halted) of 20,000; missed with a tenth of it: \(missed) of 2,000")
        #expect(halted <= 20 && missed < 100)
    }

    @Test func `several checks of one run share the probability of a false halt`() {
        let one = Self.stages
        let five = Array(repeating: one[0], count: 5) + [Stage(.rest)]
        let border = (0...100).filter { OpensRule.isTooLow(Self.opens($0, of: 1_000, usual: [(100, 1_000)]), in: one) }
        let shared = (0...100).filter { OpensRule.isTooLow(Self.opens($0, of: 1_000, usual: [(100, 1_000)]), in: five) }
        #expect(shared.count < border.count && shared.count > 0)
    }

    /// Opens of simulated broadcasts, whose rates are known.
    @Test(arguments: [2, 3]) func `equal variants show a winner in at most 5 of 100 broadcasts`(count: Int) {
        var generator = SeededGenerator(seed: UInt64(count))
        let broadcasts = 4_000
        var named = 0
        for _ in 0..<broadcasts {
            let counts = (0..<count).map { _ in
                VariantDecision.Count(accepted: 500, reached: Self.random(500, 0.1, &generator))
            }
            named += VariantDecision(VariantRule(), counts, at: Self.moment).variant == nil ? 0 : 1
        }
        print("winners among \(count) equal variants: \(named) of \(broadcasts)")
        // Three standard deviations of the simulation are 1 %.
        #expect(Double(named) / Double(broadcasts) <= 0.055)
    }

    @Test func `the better variant is chosen as often as the plan says`() throws {
        var generator = SeededGenerator(seed: 5)
        // The smallest difference that 2,000 devices each can show with a probability of 80 %.
        let seen = try #require(RateDifference.detectable(treated: 2_000, heldOut: 2_000, base: 0.05))
        let broadcasts = 1_500
        var (right, wrong) = (0, 0)
        for _ in 0..<broadcasts {
            let counts = [0.05, 0.05 + seen].map { rate in
                VariantDecision.Count(accepted: 2_000, reached: Self.random(2_000, rate, &generator))
            }
            let variant = VariantDecision(VariantRule(), counts, at: Self.moment).variant
            if variant == 1 { right += 1 } else if variant == 0 { wrong += 1 }
        }
        print("a difference of \(seen): \(right) right and \(wrong) wrong of \(broadcasts)")
        // Three standard deviations of the simulation are 3 %.
        #expect((0.77...0.83).contains(Double(right) / Double(broadcasts)) && wrong <= 2)
    }

    @Test func `a decision is confirmed by its counts alone`() {
        let rule = VariantRule()
        let clear = [
            VariantDecision.Count(accepted: 1_000, reached: 20), VariantDecision.Count(accepted: 1_000, reached: 90),
        ]
        var winner = VariantDecision(rule, clear, at: Self.moment)
        #expect(winner.variant == 1 && winner.isConfirmed(by: rule))
        winner.variant = 0
        #expect(!winner.isConfirmed(by: rule))
        winner.choose(0, by: "eve")
        #expect(!winner.isConfirmed(by: rule))
        let close = [
            VariantDecision.Count(accepted: 1_000, reached: 50), VariantDecision.Count(accepted: 1_000, reached: 55),
        ]
        var open = VariantDecision(rule, close, at: Self.moment)
        #expect(open.variant == nil && open.isConfirmed(by: rule))
        open.choose(0, by: "eve")
        #expect(open.isConfirmed(by: rule))
        open.cause = .first
        #expect(!open.isConfirmed(by: rule))
        let first = VariantRule(undecided: .first)
        #expect(VariantDecision(first, close, at: Self.moment).variant == 0)
        // A variant without an accepted push proves nothing.
        let none = [VariantDecision.Count(accepted: 0), VariantDecision.Count(accepted: 500, reached: 400)]
        #expect(VariantDecision(rule, none, at: Self.moment).variant == nil)
    }
}
