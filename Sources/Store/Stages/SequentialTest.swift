import Foundation

/// Whether more of a run fails than is put up with, asked after every answer without that raising a false alarm.
///
/// A mixture of likelihood ratios: how much better the answers so far agree with one of six higher shares of failures than
/// with the one put up with. Under that one, or a lower one, the mixture ever exceeds 1 / `a` with a probability of at most
/// `a` (Ville's inequality), whenever one looks and however often.
package struct SequentialTest: Hashable, Sendable {
    /// The shares looked for, as odds in multiples of the odds put up with: of 5 % they are 7, 10, 15, 25, 50 and 90 %.
    private static let oddsRatios = [1.430_107_5, 2.111_111_1, 3.352_941_2, 6.333_333_3, 19, 171]

    /// The lower shares looked for by ``good(tolerated:wrongMax:)``, as odds in multiples of the odds put up with.
    private static let goodOddsRatios = [0.01, 0.1, 0.25, 0.5, 0.7]

    /// What an answer adds to the logarithm of each ratio.
    private let ofFailure: [Double]
    private let ofSuccess: [Double]
    private let threshold: Double

    /// - Parameters:
    ///   - tolerated: the share of failures put up with, above 0 and below 1.
    ///   - falseHaltMax: the probability of a false alarm, at most.
    package init(tolerated: Double, falseHaltMax: Double) {
        self.init(tolerated, Self.oddsRatios, wrongMax: falseHaltMax)
    }

    /// The same test the other way round: whether fewer fail than is put up with. Under the share put up with, or a higher
    /// one, the test ever says so with a probability of at most `wrongMax`, however often it is asked.
    package static func good(tolerated: Double, wrongMax: Double) -> SequentialTest {
        SequentialTest(tolerated, goodOddsRatios, wrongMax: wrongMax)
    }

    private init(_ tolerated: Double, _ oddsRatios: [Double], wrongMax: Double) {
        let share = Self.bounded(tolerated)
        let shares = oddsRatios.map { ratio in
            let odds = share / (1 - share) * ratio
            return odds / (1 + odds)
        }
        ofFailure = shares.map { log($0 / share) }
        ofSuccess = shares.map { log((1 - $0) / (1 - share)) }
        threshold = -log(wrongMax)
    }

    /// The logarithm of the mixture.
    package func evidence(answers: Int, failures: Int) -> Double {
        let (bad, good) = (Double(failures), Double(answers - failures))
        let ratios = ofFailure.indices.map { bad * ofFailure[$0] + good * ofSuccess[$0] }
        let largest = ratios.max() ?? 0
        return largest + log(ratios.reduce(0) { $0 + exp($1 - largest) } / Double(ratios.count))
    }

    /// Whether the answers show a lower share than is put up with; for a test of ``good(tolerated:wrongMax:)``.
    package func isGood(answers: Int, failures: Int) -> Bool {
        answers > failures && evidence(answers: answers, failures: failures) >= threshold
    }

    /// The usual case, no failure at all, costs nothing.
    package func isProven(answers: Int, failures: Int) -> Bool {
        failures > 0 && evidence(answers: answers, failures: failures) >= threshold
    }

    /// How many answers it takes on the average until a share of failures is proven; nil: one that is put up with, or more
    /// than a million.
    package func answersToNotice(share: Double) -> Int? {
        var (few, many) = (1, 1_000_000)
        func isNoticed(_ answers: Int) -> Bool {
            isProven(answers: answers, failures: Int((Double(answers) * share).rounded()))
        }
        guard isNoticed(many) else { return nil }
        while few < many {
            let middle = (few + many) / 2
            if isNoticed(middle) { many = middle } else { few = middle + 1 }
        }
        return few
    }

    private static func bounded(_ share: Double) -> Double { min(max(share, 0.000_1), 0.999) }
}

/// Whether answers show that fewer fail than is put up with: asked once, when a stage has had all of its answers.
///
/// A stage whose deliveries go out in waves is asked after each wave as well. Any *go* releases all that is behind the
/// stage, so that the looks share one probability of a wrong *go*: ``interimWrongMax`` for all interim looks together,
/// which ask ``SequentialTest/good(tolerated:wrongMax:)``, and ``lastWrongMax`` for the last one.
package enum UpperBound {
    /// The probability of calling a share good that is not, at most, over all looks at a stage.
    package static let wrongMax = 0.05
    package static let interimWrongMax = 0.01
    package static let lastWrongMax = 0.04

    /// So few failures, or fewer, would come of the share put up with by chance in at most `wrongMax` of all cases.
    package static func isBelow(
        _ tolerated: Double, answers: Int, failures: Int, wrongMax: Double = lastWrongMax
    ) -> Bool {
        guard answers > 0, failures < answers else { return false }
        return atMost(failures, of: answers, tolerated) <= wrongMax
    }

    /// So many failures, or more, would come of the share tolerated by chance in at most `wrongMax` of all cases.
    package static func isAbove(_ tolerated: Double, answers: Int, failures: Int, wrongMax: Double) -> Bool {
        guard answers > 0, failures > 0 else { return false }
        return 1 - atMost(failures - 1, of: answers, tolerated) <= wrongMax
    }

    /// Answers without any failure that are enough.
    package static func answersNeeded(_ tolerated: Double) -> Int {
        guard tolerated > 0, tolerated < 1 else { return 1 }
        return Int((log(lastWrongMax) / log(1 - tolerated)).rounded(.up))
    }

    /// The binomial distribution function.
    private static func atMost(_ failures: Int, of answers: Int, _ share: Double) -> Double {
        guard share > 0 else { return 1 }
        guard share < 1 else { return 0 }
        var sum = 0.0
        // In logarithms: the first terms of a large sample are too small for a number.
        var term = Double(answers) * log(1 - share)
        for count in 0...failures {
            sum += exp(term)
            term += log(Double(answers - count) / Double(count + 1) * share / (1 - share))
        }
        return sum
    }
}
