import Foundation

/// The smallest difference that a comparison of two groups shows in 80 of 100 cases.
///
/// A comparison shows a difference if Newcombe's interval leaves out 0, see ``RateDifference/isCertain``. The
/// probability of this is a sum over the counts of both groups. A formula with one variance for both groups would
/// promise too much: the interval is wider for rare events and for groups of different sizes.
struct DetectableDifference {
    private static let power = 0.8
    /// Halvings of the interval in which the difference lies. The interval is at most as long as the difference.
    private static let halvings = 14

    private let treated: Int
    private let heldOut: Int
    private let base: Double
    private let z: Double

    /// - Parameters:
    ///   - treated: the devices of the group with the push. Not 0.
    ///   - heldOut: the devices of the other group. Not 0.
    ///   - base: the share of the other group that does it.
    ///   - z: the quantile of the interval.
    init(treated: Int, heldOut: Int, base: Double, z: Double) {
        self.treated = treated
        self.heldOut = heldOut
        // From a large share, the comparison is of those that do not do it.
        self.base = min(base, 1 - base)
        self.z = z
    }

    /// A difference from 0 to 1, or `nil` if even the largest one is shown less often.
    var value: Double? {
        let most = 1 - base
        guard shown(most) >= Self.power else { return nil }
        let variance = base * (1 - base) * (1 / Double(treated) + 1 / Double(heldOut))
        var (low, high) = (0.0, min(most, max(z * variance.squareRoot(), 1 / Double(treated + heldOut))))
        while shown(high) < Self.power { (low, high) = (high, min(most, 2 * high)) }
        for _ in 0..<Self.halvings {
            let middle = (low + high) / 2
            if shown(middle) < Self.power { low = middle } else { high = middle }
        }
        return high
    }

    /// Returns the probability that the comparison shows a true difference.
    private func shown(_ difference: Double) -> Double {
        let own = BinomialCounts(treated, share: min(1, base + difference))
        let other = BinomialCounts(heldOut, share: base)
        var (sum, least) = (0.0, 0)
        for point in other.points {
            least = leastShown(against: point.count, from: least)
            sum += point.mass * own.tail(from: least)
        }
        return sum
    }

    /// Returns the smallest count of treated devices that shows a difference to a count of the others. It is larger
    /// than the number of devices if there is none.
    ///
    /// - Parameter start: a count that is not too large, such as the result for fewer of the others.
    private func leastShown(against other: Int, from start: Int) -> Int {
        guard start <= treated, !isShown(start, other) else { return start }
        var (low, high, step) = (start, start, 1)
        repeat {
            guard high < treated else { return treated + 1 }
            low = high
            high = min(treated, high + step)
            step *= 2
        } while !isShown(high, other)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if isShown(middle, other) { high = middle } else { low = middle }
        }
        return high
    }

    private func isShown(_ count: Int, _ other: Int) -> Bool {
        let found = RateDifference(Proportion(count, of: treated), minus: Proportion(other, of: heldOut), z: z)
        return (found?.interval.lowerBound ?? 0) > 0
    }
}

/// The counts that a group of devices may have, with their probabilities. A large group has a normal distribution, and
/// some of its counts stand for those between them.
private struct BinomialCounts {
    /// Up to this standard deviation, each count has its own probability.
    private static let exactMax = 64.0
    /// The counts of a large group within one standard deviation.
    private static let density = 32.0

    /// The counts within six or more standard deviations of the mean, in ascending order. The masses add up to 1.
    let points: [(count: Int, mass: Double)]
    private let mean: Double
    private let deviation: Double
    /// The probability of each of ``points`` or a larger count. Empty for a large group.
    private let tails: [Double]

    init(_ total: Int, share: Double) {
        mean = Double(total) * share
        deviation = (mean * (1 - share)).squareRoot()
        let isExact = deviation <= Self.exactMax
        // A rare event has a long tail.
        let reach = isExact ? 7 * deviation + 20 : 6 * deviation
        let counts = max(0, Int(mean - reach))...min(total, Int(mean + reach))
        let masses = isExact ? Self.exact(total, share, counts) : Self.normal(mean, deviation, counts)
        let sum = masses.reduce(0) { $0 + $1.mass }
        points = masses.map { ($0.count, $0.mass / sum) }
        var (tails, tail): ([Double], Double) = ([], 0)
        if isExact {
            for point in points.reversed() {
                tail += point.mass
                tails.append(tail)
            }
        }
        self.tails = tails.reversed()
    }

    private static func exact(
        _ total: Int, _ share: Double, _ counts: ClosedRange<Int>
    ) -> [(count: Int, mass: Double)] {
        let mode = min(counts.upperBound, max(counts.lowerBound, Int(Double(total) * share)))
        var masses = [Double](repeating: 0, count: counts.count)
        masses[mode - counts.lowerBound] = 1
        let odds = share / (1 - share)
        for count in stride(from: mode, to: counts.lowerBound, by: -1) {
            masses[count - 1 - counts.lowerBound] =
                masses[count - counts.lowerBound] * Double(count) / Double(total - count + 1) / odds
        }
        for count in mode..<counts.upperBound {
            masses[count + 1 - counts.lowerBound] =
                masses[count - counts.lowerBound] * Double(total - count) / Double(count + 1) * odds
        }
        return zip(counts, masses).map { ($0, $1) }
    }

    private static func normal(
        _ mean: Double, _ deviation: Double, _ counts: ClosedRange<Int>
    ) -> [(count: Int, mass: Double)] {
        stride(from: counts.lowerBound, through: counts.upperBound, by: max(1, Int(deviation / density))).map { count in
            let distance = (Double(count) - mean) / deviation
            return (count, exp(-distance * distance / 2))
        }
    }

    /// Returns the probability of this count or a larger one.
    func tail(from count: Int) -> Double {
        guard !tails.isEmpty else { return erfc((Double(count) - 0.5 - mean) / (deviation * 2.0.squareRoot())) / 2 }
        let place = count - points[0].count
        return place <= 0 ? 1 : place < tails.count ? tails[place] : 0
    }
}
