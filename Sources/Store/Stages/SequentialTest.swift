import Foundation

/// A test of whether more of a run fails than is tolerated. It may be evaluated after every response without more false
/// alarms.
///
/// The test is a mixture of likelihood ratios. It measures how much better the responses so far agree with one of six
/// higher shares of failures than with the tolerated share. If the real share is the tolerated one, or lower, the
/// probability that the mixture ever exceeds 1 / `a` is at most `a` (Ville's inequality). This holds for any times and
/// any number of evaluations.
package struct SequentialTest: Hashable, Sendable {
    /// The tested shares, as odds in multiples of the tolerated odds. For 5 % they are 7, 10, 15, 25, 50 and 90 %.
    private static let oddsRatios = [1.430_107_5, 2.111_111_1, 3.352_941_2, 6.333_333_3, 19, 171]

    /// The lower shares that ``good(tolerated:wrongMax:)`` tests, as odds in multiples of the tolerated odds.
    private static let goodOddsRatios = [0.01, 0.1, 0.25, 0.5, 0.7]

    /// The amount that a failure adds to the logarithm of each ratio. ``ofSuccess`` is the amount for a success.
    private let ofFailure: [Double]
    private let ofSuccess: [Double]
    private let threshold: Double

    /// - Parameters:
    ///   - tolerated: the tolerated share of failures, above 0 and below 1.
    ///   - falseHaltMax: the maximum probability of a false alarm.
    package init(tolerated: Double, falseHaltMax: Double) {
        self.init(tolerated, Self.oddsRatios, wrongMax: falseHaltMax)
    }

    /// Returns the reverse test: whether fewer fail than is tolerated. If the real share is the tolerated one, or
    /// higher, the probability that the test ever confirms fewer failures is at most `wrongMax`. This holds for any
    /// number of evaluations.
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

    /// Returns the logarithm of the mixture.
    package func evidence(answers: Int, failures: Int) -> Double {
        let (bad, good) = (Double(failures), Double(answers - failures))
        let ratios = ofFailure.indices.map { bad * ofFailure[$0] + good * ofSuccess[$0] }
        let largest = ratios.max() ?? 0
        return largest + log(ratios.reduce(0) { $0 + exp($1 - largest) } / Double(ratios.count))
    }

    /// Returns whether the responses show a lower share than is tolerated. Call it only for a test from
    /// ``good(tolerated:wrongMax:)``.
    package func isGood(answers: Int, failures: Int) -> Bool {
        answers > failures && evidence(answers: answers, failures: failures) >= threshold
    }

    /// Returns whether the responses show a higher share than is tolerated. The usual case, no failure, needs no
    /// computation.
    package func isProven(answers: Int, failures: Int) -> Bool {
        failures > 0 && evidence(answers: answers, failures: failures) >= threshold
    }

    /// Returns the number of responses after which the test proves this share, if the failures are spread evenly.
    /// Returns `nil` if that takes more than a million responses, as for a tolerated share.
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

/// A test of whether the responses show that fewer fail than is tolerated. It is evaluated once, when a stage has all
/// of its responses.
///
/// A stage whose deliveries go out in waves is also evaluated after each wave. Any *go* releases everything after the
/// stage, so all evaluations share one probability of a wrong *go*. ``interimWrongMax`` covers all interim evaluations
/// together, which use ``SequentialTest/good(tolerated:wrongMax:)``. ``lastWrongMax`` covers the last evaluation.
package enum UpperBound {
    /// The maximum probability of judging a bad share good, over all evaluations of a stage.
    package static let wrongMax = 0.05
    package static let interimWrongMax = 0.01
    package static let lastWrongMax = 0.04

    /// Returns whether so few failures are unlikely at the tolerated share: their probability, or that of fewer, is at
    /// most `wrongMax`.
    package static func isBelow(
        _ tolerated: Double, answers: Int, failures: Int, wrongMax: Double = lastWrongMax
    ) -> Bool {
        guard answers > 0, failures < answers else { return false }
        return atMost(failures, of: answers, tolerated) <= wrongMax
    }

    /// Returns whether so many failures are unlikely at the tolerated share: their probability, or that of more, is at
    /// most `wrongMax`.
    package static func isAbove(_ tolerated: Double, answers: Int, failures: Int, wrongMax: Double) -> Bool {
        guard answers > 0, failures > 0 else { return false }
        return 1 - atMost(failures - 1, of: answers, tolerated) <= wrongMax
    }

    /// Returns the number of responses that suffices if none of them is a failure.
    package static func answersNeeded(_ tolerated: Double) -> Int {
        guard tolerated > 0, tolerated < 1 else { return 1 }
        return Int((log(lastWrongMax) / log(1 - tolerated)).rounded(.up))
    }

    /// Returns the value of the binomial distribution function.
    private static func atMost(_ failures: Int, of answers: Int, _ share: Double) -> Double {
        guard share > 0 else { return 1 }
        guard share < 1 else { return 0 }
        var sum = 0.0
        // Computed in logarithms, because the first terms of a large sample are too small for a `Double`.
        var term = Double(answers) * log(1 - share)
        for count in 0...failures {
            sum += exp(term)
            term += log(Double(answers - count) / Double(count + 1) * share / (1 - share))
        }
        return sum
    }
}
