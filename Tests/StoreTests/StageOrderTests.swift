import Model
import Store
import Testing

/// The verdict on a stage whose refusals come before its acceptances, and on one with more texts than are told apart.
@Suite struct StageOrderTests {
    enum Order: CaseIterable {
        /// All that are in flight are answered at once, or refusals first, or in the order they went.
        case together, refusalsFirst, asSent
    }

    private struct Push {
        var isRefused: Bool
        var isGone: Bool
        var locale: Int

        var isBad: Bool { isRefused || isGone }
    }

    /// A stage of 500 that is sent as ``StageController`` allows.
    private struct Broadcast {
        let share: Double
        let order: Order
        /// Whether those in flight are counted.
        var countsFlying = true
        var most: (Int) -> Int = { StageController.most(afterAnswers: $0) }
        private let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: 0.05)
        private var flying: [Push] = []
        private var groups: [StageGroup: StageAnswers] = [:]
        private(set) var answered = 0

        init(share: Double, _ order: Order) {
            self.share = share
            self.order = order
        }

        /// The answers after which it is halted; nil: it never is.
        mutating func run(_ generator: inout SeededGenerator) -> Int? {
            while answered < 500 {
                while flying.count < most(answered) { flying.append(draw(&generator)) }
                if order == .refusalsFirst { flying = flying.filter(\.isBad) + flying.filter { !$0.isBad } }
                let count = order == .together ? flying.count : Int.random(in: 1...flying.count, using: &generator)
                let batch = flying.prefix(order == .asSent ? 1 : count)
                flying.removeFirst(batch.count)
                answered += batch.count
                for push in batch {
                    let answer = StageAnswers(answered: 1, failed: push.isRefused ? 1 : 0, gone: push.isGone ? 1 : 0)
                    let group = StageGroup(environment: .production, locale: push.locale)
                    groups.merge([group: answer], uniquingKeysWith: +)
                }
                guard batch.contains(where: \.isBad) else { continue }
                let unanswered = countsFlying ? [PushEnvironment.production: flying.count] : [:]
                if evaluator.halt(groups, unanswered: unanswered, at: Timestamp(seconds: 0)) != nil { return answered }
            }
            return nil
        }

        private func draw(_ generator: inout SeededGenerator) -> Push {
            let chance = Double.random(in: 0..<1, using: &generator)
            return Push(
                isRefused: chance < share, isGone: chance > 0.98, locale: Int.random(in: 0..<8, using: &generator))
        }
    }

    /// After how many answers some of so many are halted.
    private func halts(
        _ share: Double, _ order: Order, runs: Int, seed: UInt64, _ change: (inout Broadcast) -> Void = { _ in }
    ) -> [Int] {
        var generator = SeededGenerator(seed: seed)
        return (0..<runs).compactMap { _ in
            var broadcast = Broadcast(share: share, order)
            change(&broadcast)
            return broadcast.run(&generator)
        }.sorted()
    }

    @Test func `1,000 healthy broadcasts whose refusals are answered first see at most one false halt`() {
        #expect(halts(0.02, .refusalsFirst, runs: 1_000, seed: 42).count <= 1)
    }

    @Test func `it is those in flight that keep refusals that come first from halting at the share put up with`() {
        let many = { max(8, $0) }
        #expect(halts(0.05, .refusalsFirst, runs: 100, seed: 43) { $0.most = many }.count <= 1)
        let uncounted = halts(0.05, .refusalsFirst, runs: 100, seed: 43) {
            $0.most = many
            $0.countsFlying = false
        }
        #expect(uncounted.count > 3, "\(uncounted.count) of 100")
    }

    @Test(arguments: Order.allCases)
    func `of a broadcast that is refused by half, a median of 12 answers is enough in whichever order they come`(
        order: Order
    ) {
        let halted = halts(0.5, order, runs: 101, seed: 44)
        #expect(halted.count == 101)
        #expect(halted[50] <= 12, "median \(halted[50])")
    }

    /// 500 texts in two environments, each with these answers.
    private func groups(_ answers: (Int) -> StageAnswers) -> [StageGroup: StageAnswers] {
        var found: [StageGroup: StageAnswers] = [:]
        for environment in PushEnvironment.allCases {
            for text in 0..<500 { found[StageGroup(environment: environment, locale: text)] = answers(text) }
        }
        return found
    }

    @Test func `of 500 texts the first are judged by themselves, the others together, and the limit is shared by all`()
        throws
    {
        let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: nil)
        let moment = Timestamp(seconds: 0)
        let healthy = groups { _ in StageAnswers(answered: 1_000, failed: 10) }
        #expect(Set(healthy.keys.map(\.judged)).count <= StageGroup.judgedMax)
        #expect(evaluator.halt(healthy, unanswered: [:], at: moment) == nil)
        // One of the first is found by its own answers.
        let own = groups { StageAnswers(answered: $0 == 97 ? 20 : 1_000, failed: $0 == 97 ? 20 : 0) }
        let first = try #require(evaluator.halt(own, unanswered: [:], at: moment))
        #expect(first.group == StageGroup(environment: .production, locale: 97) && evaluator.confirms(first))
        // Three refusals of ten show nothing of one text, and much of four hundred.
        let others = groups { StageAnswers(answered: $0 < 98 ? 10_000 : 10, failed: $0 < 98 ? 0 : 3) }
        let further = try #require(evaluator.halt(others, unanswered: [:], at: moment))
        #expect(further.group == StageGroup(environment: .production, locale: StageGroup.localesMax))
        #expect(further.answers == StageAnswers(answered: 4_020, failed: 1_206) && evaluator.confirms(further))
    }

    @Test func `what is in flight of a text is taken to be its share of the answers`() throws {
        let evaluator = StageEvaluator(Stage(.share(1)), goneTolerated: nil)
        let broken = StageGroup(environment: .production, locale: 1)
        let groups = [
            StageGroup(environment: .production, locale: 0): StageAnswers(answered: 490),
            broken: StageAnswers(answered: 10, failed: 10),
        ]
        let decision = try #require(evaluator.halt(groups, unanswered: [.production: 100], at: Timestamp(seconds: 0)))
        #expect(decision.group == broken && decision.unanswered == 2 && evaluator.confirms(decision))
    }
}
