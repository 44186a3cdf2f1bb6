import Model
import Store
import Testing

/// The verdict on a stage: its error rates, by simulation with fixed seeds.
@Suite struct StageEvaluatorTests {
    private static let halts = SequentialTest(tolerated: 0.05, falseHaltMax: 0.001)

    /// After how many of 10,000 answers each of some runs is halted; those that never are left out.
    private func haltedAfter(share: Double, runs: Int, seed: UInt64) -> [Int] {
        var generator = SeededGenerator(seed: seed)
        return (0..<runs).compactMap { _ in
            var failures = 0
            for answers in 1...10_000 {
                guard Double.random(in: 0..<1, using: &generator) < share else { continue }
                failures += 1
                if Self.halts.isProven(answers: answers, failures: failures) { return answers }
            }
            return nil
        }.sorted()
    }

    @Test(arguments: [(0.10, 382), (0.15, 108), (0.25, 34), (0.5, 9), (1.0, 3)])
    func `a share of failures that is too high is found after as many answers as published`(
        share: Double, median: Int
    ) {
        let halted = haltedAfter(share: share, runs: 300, seed: 11)
        #expect(halted.count == 300)
        let found = halted[halted.count / 2]
        #expect(abs(found - median) <= max(1, median / 4), "median \(found)")
    }

    @Test func `at the share that is put up with, and below, hardly any run is halted however often it is looked at`() {
        #expect(haltedAfter(share: 0.05, runs: 2_000, seed: 5).count <= 4)
        #expect(haltedAfter(share: 0.03, runs: 500, seed: 6).isEmpty)
        let above = haltedAfter(share: 0.06, runs: 300, seed: 7).count
        #expect((60...180).contains(above), "\(above) of 300; published 39 %")
    }

    /// As a whole: the three questions share one limit.
    @Test func `1,000 healthy broadcasts see at most one false halt, and one of 50 % failures a median of 12 answers`()
    {
        var generator = SeededGenerator(seed: 42)
        func run(_ failures: Double) -> Int? {
            let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: 0.05)
            var whole = StageAnswers()
            var groups: [Int: StageAnswers] = [:]
            for number in 1...1_000 {
                let draw = Double.random(in: 0..<1, using: &generator)
                let locale = Int.random(in: 0..<20, using: &generator)
                let answer = StageAnswers(
                    answered: 1, failed: draw < failures ? 1 : 0, gone: draw > 0.98 ? 1 : 0)
                whole = whole + answer
                let own = (groups[locale] ?? StageAnswers()) + answer
                groups[locale] = own
                let group = StageGroup(environment: .production, locale: locale)
                if evaluator.halt(whole, own, of: group, at: Timestamp(seconds: 0)) != nil { return number }
            }
            return nil
        }
        #expect((0..<1_000).count { _ in run(0.02) != nil } <= 1)
        let halted = (0..<501).compactMap { _ in run(0.5) }.sorted()
        #expect(halted.count == 501)
        #expect(halted[250] <= 12, "median \(halted[250])")
    }

    @Test func `one text in fifty that is broken is found by its own few answers`() throws {
        let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: nil)
        let group = StageGroup(environment: .production, locale: 7)
        let seen = (1...20).first { bad in
            // 1 of 50 devices has this text: the whole stage fails by 2 %, which is put up with.
            let whole = StageAnswers(answered: bad * 50, failed: bad)
            let own = StageAnswers(answered: bad, failed: bad)
            return evaluator.halt(whole, own, of: group, at: Timestamp(seconds: 0)) != nil
        }
        #expect(try #require(seen) <= 7)
        let decision = try #require(
            evaluator.halt(
                StageAnswers(answered: 500, failed: 10), StageAnswers(answered: 10, failed: 10), of: group,
                at: Timestamp(seconds: 0)))
        #expect(decision.group == group && decision.verdict == .halt && evaluator.confirms(decision))
    }

    @Test func `devices that are gone are held against the last run, not against the refusals`() {
        let group = StageGroup(environment: .production, locale: 0)
        let usual = StageEvaluator(Stage(.share(1)), goneTolerated: StageEvaluator.goneTolerated(after: [(20, 1_000)]))
        let answers = StageAnswers(answered: 200, gone: 8)
        #expect(usual.halt(answers, answers, of: group, at: Timestamp(seconds: 0)) == nil)
        #expect(usual.decision(on: answers, at: Timestamp(seconds: 0)).verdict == .go)
        // An old backup was imported.
        let old = StageAnswers(answered: 100, gone: 60)
        #expect(usual.halt(old, old, of: group, at: Timestamp(seconds: 0))?.isAboutGone == true)
    }

    @Test func `a stage in which far more devices are gone than tolerated does not prove itself`() {
        func end(_ gone: Int, tolerated: Double?) -> StageDecision {
            let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: tolerated)
            let decision = evaluator.decision(on: StageAnswers(answered: 552, gone: gone), at: Timestamp(seconds: 0))
            #expect(evaluator.confirms(decision))
            return decision
        }
        // 40 % in a campaign whose app has no history either: 30 % is tolerated.
        #expect(end(218, tolerated: nil).verdict == .undecided)
        #expect(end(218, tolerated: nil).goneTolerated == 0.3)
        #expect(end(180, tolerated: nil).verdict == .go)
        #expect(end(60, tolerated: 0.05).verdict == .undecided)
        #expect(end(30, tolerated: 0.05).verdict == .go)
        #expect(end(0, tolerated: 0.05).goneTolerated == nil)
        // Recorded before this was judged.
        let old = StageDecision(
            .go, at: Timestamp(seconds: 0), StageAnswers(answered: 552, gone: 218), tolerated: 0.05, look: .last)
        #expect(StageEvaluator(Stage(.share(1)), goneTolerated: nil).confirms(old))
    }

    @Test(
        arguments: [
            ([], nil), ([(60, 199)], nil), ([(20, 1_000)], 0.05), ([(0, 1_000), (100, 1_000), (20, 1_000)], 0.2),
            ([(900, 1_000), (0, 1_000)], 0.9), ([(150, 199), (50, 1_000)], 0.1),
        ] as [([(gone: Int, answered: Int)], Double?)])
    func `twice the most gone of the last runs is put up with, of those that say anything`(
        runs: [(gone: Int, answered: Int)], tolerated: Double?
    ) {
        #expect(StageEvaluator.goneTolerated(after: runs) == tolerated)
    }

    @Test(arguments: [
        (StageAnswers(answered: 63), StageVerdict.go), (StageAnswers(answered: 62), .undecided),
        (StageAnswers(answered: 1_000, failed: 37), .go), (StageAnswers(answered: 1_000, failed: 38), .undecided),
        (StageAnswers(answered: 1_000, failed: 50), .undecided),
        (StageAnswers(answered: 63, unknown: 1), .undecided), (StageAnswers(), .undecided),
        (StageAnswers(answered: 100, gone: 60), .undecided), (StageAnswers(answered: 20_000, failed: 900), .go),
    ])
    func `what was answered decides whether a stage may pass, and silence never does`(
        answers: StageAnswers, verdict: StageVerdict
    ) {
        let evaluator = StageEvaluator(Stage(.share(1), toleratePercent: 5), goneTolerated: nil)
        let decision = evaluator.decision(on: answers, at: Timestamp(seconds: 0))
        #expect(decision.verdict == verdict)
        #expect(evaluator.confirms(decision))
        var forged = decision
        forged.verdict = verdict == .go ? .undecided : .go
        #expect(!evaluator.confirms(forged))
    }

    @Test func `a verdict of an earlier version is confirmed by the test that it was made with`() {
        let evaluator = StageEvaluator(Stage(.share(1), toleratePercent: 5), goneTolerated: nil)
        for (answered, verdict) in [(59, StageVerdict.go), (58, .undecided)] {
            let old = StageDecision(
                verdict, at: Timestamp(seconds: 0), StageAnswers(answered: answered), tolerated: 0.05)
            #expect(evaluator.confirms(old))
        }
        for look in [StageLook.interim, .last] {
            let forged = StageDecision(
                .go, at: Timestamp(seconds: 0), StageAnswers(answered: 59), tolerated: 0.05, look: look)
            #expect(!evaluator.confirms(forged))
        }
    }

    /// 24 waves of 60 deliveries, a look after each, as a run by each device's clock has them. Returns the share of
    /// runs that are let go.
    private static func letGo(trueShare: Double, runs: Int) -> Double {
        var random = Draws()
        let evaluator = StageEvaluator(Stage(.share(1), toleratePercent: 5), goneTolerated: nil)
        let passed = (0..<runs).count { _ in
            var answers = StageAnswers()
            for wave in 1...24 {
                let failed = (0..<60).count { _ in Double.random(in: 0..<1, using: &random) < trueShare }
                answers = answers + StageAnswers(answered: 60, failed: failed)
                let look: StageLook = wave == 24 ? .last : .interim
                if evaluator.decision(on: answers, look: look, at: Timestamp(seconds: 0)).verdict == .go { return true }
            }
            return false
        }
        return Double(passed) / Double(runs)
    }

    @Test func `looking at each of 24 waves lets no more bad runs go than looking once`() {
        // 0.05 and three standard deviations of 2,000 runs.
        #expect(Self.letGo(trueShare: 0.05, runs: 2_000) <= 0.065)
        #expect(Self.letGo(trueShare: 0.06, runs: 1_000) <= 0.01)
        // What is good is still let go.
        #expect(Self.letGo(trueShare: 0.02, runs: 200) >= 0.98)
        #expect(Self.letGo(trueShare: 0.03, runs: 200) >= 0.85)
    }

    @Test func `a good stage need not wait for its last wave`() {
        let evaluator = StageEvaluator(Stage(.share(1), toleratePercent: 5), goneTolerated: nil)
        func verdict(_ answers: StageAnswers) -> StageVerdict {
            evaluator.decision(on: answers, look: .interim, at: Timestamp(seconds: 0)).verdict
        }
        #expect(verdict(StageAnswers(answered: 100)) == .undecided)
        #expect(verdict(StageAnswers(answered: 115)) == .go)
        #expect(verdict(StageAnswers(answered: 300, failed: 3)) == .go)
    }

    @Test func `a few seeds pass when each was answered and none refused`() {
        let evaluator = StageEvaluator(Stage(.seeds(.segment("staff"))), goneTolerated: nil)
        func verdict(_ answers: StageAnswers) -> StageVerdict {
            evaluator.decision(on: answers, at: Timestamp(seconds: 0)).verdict
        }
        #expect(verdict(StageAnswers(answered: 3)) == .go)
        #expect(verdict(StageAnswers(answered: 3, failed: 1)) == .undecided)
        #expect(verdict(StageAnswers(answered: 2, unknown: 1)) == .undecided)
        #expect(verdict(StageAnswers(answered: 1, gone: 1)) == .undecided)
        #expect(verdict(StageAnswers()) == .undecided)
    }

    @Test func `a plan can say how soon each share of failures would be noticed`() throws {
        let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: nil)
        #expect(evaluator.answersToNotice(share: 0.04) == nil)
        #expect(try #require(evaluator.answersToNotice(share: 1)) <= 4)
        #expect((300...600).contains(try #require(evaluator.answersToNotice(share: 0.1))))
        #expect(evaluator.answersNeeded == 63)
    }
}

/// The same draws in each run of the test: splitmix64.
private struct Draws: RandomNumberGenerator {
    private var state: UInt64 = 1

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
